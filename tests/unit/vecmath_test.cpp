// The vector-math texts, compiled by the JIT for this machine's instruction sets, against MPFR: sampled error, special values,
// all inputs of f16 and bf16, equal bits on all targets. tests/exhaustive measures the same over all 2^32 inputs.
#include "fuselab/codegen/cpp/vecmath/vecmath.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "fuselab/core/error.h"
#include "fuselab/core/hash.h"
#include "fuselab/jit/jit.h"

#ifdef FUSELAB_HAVE_MPFR
#include "tests/exhaustive/vecmath_reference.h"

namespace fuselab::codegen::vecmath {
namespace {

namespace ref = vecmath_reference;

/// z[i] = f(x[i], y[i]) for n a multiple of 16.
Source loop_of(const Function& f) {
  const std::string type = f.type == DType::f64 ? "f64" : "f32";
  const std::string kernel = "loop_" + std::string(f.name) + "_" + std::string(name(f.type));
  Source s;
  s.name = kernel;
  s.tiling_def = std::string(prelude()) + texts({{std::string(f.name), f.type}}) + "struct " + kernel +
                 "_tiling { i64 phases, units[2], grain[2], scratch, shared; };\nextern \"C\" const i64 " + kernel +
                 "_tiling_bytes = sizeof(" + kernel + "_tiling);\n";
  s.host_impl = "extern \"C\" void " + kernel + "_tile(const i64* sizes, i64, void* out) {\n  *(" + kernel +
                "_tiling*)out = {1, {sizes[0] / 16, 0}, {1, 1}, 0, 0};\n}\n";
  s.device_impl =
      "extern \"C\" i64 " + kernel + "_run(void* const* bufs, const void*, i64, i64 begin, i64 end, char*, char*) {\n  typedef " +
      type + "x16 V __attribute__((aligned(4)));\n  for (i64 i = 16 * begin; i < 16 * end; i += 16) {\n    " + type +
      "x16 x = *(const V*)((const " + type + "*)bufs[0] + i), y = *(const V*)((const " + type + "*)bufs[1] + i);\n    *(V*)((" +
      type + "*)bufs[2] + i) = " + std::string(f.symbol) + (f.args == 1 ? "(x)" : "(x, y)") + ";\n  }\n  return 0;\n}\n";
  s.sizes = {"n"};
  s.hash = hash_hex(s.text());
  return s;
}

std::vector<jit::Target> targets() {
  const std::string best = jit::Target::host().isa;
  std::vector<jit::Target> result = {{best}};
  if (best == "avx512") result.push_back({"avx2"});
  return result;
}

template <typename T>
std::vector<T> run(const Function& f, const jit::Target& target, std::vector<T> x, std::vector<T> y) {
  const std::size_t n = x.size();
  while (x.size() % 16 != 0) x.push_back(1), y.push_back(1);
  std::vector<T> z(x.size());
  jit::Options options;
  options.read_cache = false;
  const jit::Kernel kernel = jit::load(loop_of(f), target, options);
  void* bufs[] = {x.data(), y.data(), z.data()};
  EXPECT_EQ(kernel.run(bufs, nullptr, 0, 0, static_cast<std::int64_t>(x.size() / 16), nullptr, nullptr), 0);
  z.resize(n);
  return z;
}

/// Largest error allowed, in ulp: what docs/vector-math.md measured over all inputs, rounded up.
double bound(const Function& f) {
  static const std::map<std::string, double> f32 = {
      {"exp", 0.545},     {"exp2", 0.53}, {"expm1", 0.72},    {"tanh", 0.505},       {"sigmoid", 1.75},  {"silu", 1.75},
      {"gelu", 7.3},      {"log", 0.51},  {"log2", 0.51},     {"log10", 0.51},       {"log1p", 0.51},    {"sin", 0.601},
      {"cos", 0.601},     {"tan", 0.61},  {"erf", 0.65},      {"mish", 1.55},        {"exp_sum", 1.0},   {"recip", 0.5},
      {"softplus", 0.55}, {"rsqrt", 1.5}, {"gelu_tanh", 2.0}, {"log_sigmoid", 0.55}, {"hardswish", 2.0}, {"erfc", 0.51},
      {"pow", 0.7},       {"atan2", 0.76}};
  static const std::map<std::string, double> f64 = {{"erfc", 5.5}, {"gelu", 24}, {"mish", 4},
                                                    {"sinh", 2},   {"atanh", 2}, {"cosh", 1.5}};
  if (f.type == DType::f32) return f32.count(std::string(f.name)) != 0 ? f32.at(std::string(f.name)) : 0.5001;
  return f64.count(std::string(f.name)) != 0 ? f64.at(std::string(f.name)) : 1.6;
}

template <typename T>
std::pair<std::vector<T>, std::vector<T>> samples(int args) {
  using L = std::numeric_limits<T>;
  const std::vector<T> special = {T(0),
                                  T(-0.0),
                                  T(0.5),
                                  T(-0.5),
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  3,
                                  -3,
                                  T(1.5),
                                  10,
                                  -20,
                                  100,
                                  -120,
                                  T(1e5),
                                  T(-3e6),
                                  L::infinity(),
                                  -L::infinity(),
                                  L::quiet_NaN(),
                                  L::max(),
                                  L::lowest(),
                                  L::min(),
                                  -L::min(),
                                  L::denorm_min(),
                                  -L::denorm_min()};
  std::vector<T> x, y;
  for (const T a : special) {
    for (const T b : special) {
      x.push_back(a);
      y.push_back(b);
      if (args == 1) break;
    }
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 4000; ++i) {
    for (std::vector<T>* v : {&x, &y}) {
      const std::uint64_t r = random();
      T any;
      std::memcpy(&any, &r, sizeof any);
      v->push_back(i % 2 == 0
                       ? any
                       : static_cast<T>(std::ldexp(static_cast<double>(r >> 11) * 0x1p-52 - 1, static_cast<int>(r & 15) - 6)));
    }
  }
  return {x, y};
}

template <typename T>
void check(const Function& f, const ref::Format& format) {
  SCOPED_TRACE(std::string(f.name) + " " + std::string(name(f.type)));
  const ref::Reference* r = ref::find(f.name == "exp_sum" ? "exp" : f.name);
  ASSERT_NE(r, nullptr) << "no reference";
  const auto [x, y] = samples<T>(f.args);
  std::vector<std::vector<T>> results;
  for (const jit::Target& target : targets()) results.push_back(run<T>(f, target, x, y));
  int reported = 0;
  for (std::size_t i = 0; i < x.size() && reported < 5; ++i) {
    const ref::Number a(x[i]), b(y[i]);
    ref::Number exact;
    r->exact(exact.value, a.value, b.value);
    const double want = ref::rounded(format, exact.value);
    const T got = results[0][i];
    bool good;
    if (std::isnan(want))
      good = std::isnan(got);
    else if (std::isinf(want) || !std::isfinite(got))
      good = got == want;
    else if (want == 0 && got == 0)
      good = std::signbit(got) == std::signbit(want);
    // f64 mish below -700 has e^x among the subnormals, where few bits are left.
    else
      good = ref::error_ulp(format, got, exact.value) <= bound(f) || (f.name == "mish" && x[i] < -700);
    if (!good) {
      ++reported;
      ADD_FAILURE() << f.name << "(" << x[i] << ", " << y[i] << ") = " << got << ", want " << want << ", off by "
                    << ref::error_ulp(format, got, exact.value) << " ulp";
    }
    for (std::size_t t = 1; t < results.size(); ++t) {
      if (std::isnan(got) && std::isnan(results[t][i])) continue;
      EXPECT_EQ(std::memcmp(&got, &results[t][i], sizeof got), 0)
          << f.name << " differs between targets at " << x[i] << ", " << y[i];
    }
  }
}

TEST(Vecmath, EveryF32FunctionIsWithinItsBoundAndExactAtSpecialValues) {
  for (const Function* f : all()) {
    if (f->type == DType::f32 && f->name != "quotient") check<float>(*f, ref::kF32);
  }
}

TEST(Vecmath, QuotientByARowSumRoundsLikeDivision) {
  std::mt19937_64 random(11);
  std::vector<float> a, s;
  for (int i = 0; i < 200000; ++i) {
    const double sum = std::ldexp(1 + static_cast<double>(random() >> 11) * 0x1p-53, static_cast<int>(random() % 20));
    s.push_back(static_cast<float>(sum));
    a.push_back(static_cast<float>(std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53, -static_cast<int>(random() % 60))));
  }
  const std::vector<float> got = run<float>(*find("quotient", DType::f32), jit::Target::host(), a, s);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(got[i], a[i] / s[i]) << a[i] << " / " << s[i];
}

TEST(Vecmath, EveryF64FunctionIsWithinItsBoundAndExactAtSpecialValues) {
  for (const Function* f : all()) {
    if (f->type == DType::f64) check<double>(*f, ref::kF64);
  }
}

float widen(std::uint32_t pattern, DType type) {
  if (type == DType::bf16) {
    pattern <<= 16;
    float x;
    std::memcpy(&x, &pattern, 4);
    return x;
  }
  const int exponent = static_cast<int>(pattern >> 10 & 31), fraction = static_cast<int>(pattern & 1023);
  const float sign = (pattern & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                               : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}

TEST(Vecmath, LowPrecisionResultsAreCorrectlyRoundedForAllInputs) {
  for (const DType type : {DType::f16, DType::bf16}) {
    const ref::Format& format = type == DType::f16 ? ref::kF16 : ref::kBF16;
    std::vector<float> x;
    for (std::uint32_t i = 0; i < 65536; ++i) x.push_back(widen(i, type));
    for (const Function* f : all()) {
      if (f->type != DType::f32 || f->args != 1 || f->name == "exp_sum") continue;
      const Function* repaired = find(f->name, type);
      const std::vector<float> y = run<float>(repaired != nullptr ? *repaired : *f, jit::Target::host(), x, x);
      const ref::Reference* r = ref::find(f->name);
      int wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double want = ref::rounded_value(*r, format, x[i]), have = ref::rounded(format, static_cast<double>(y[i]));
        const bool same = std::isnan(want) ? std::isnan(have) : want == have && std::signbit(want) == std::signbit(have);
        if (!same && wrong++ == 0)
          ADD_FAILURE() << f->name << " " << name(type) << " at " << x[i] << ": " << have << ", want " << want;
      }
      EXPECT_EQ(wrong, 0) << f->name << " " << name(type);
    }
  }
}

TEST(Vecmath, PowersThatAreExactComeOutExact) {
  std::vector<float> x, y, want;
  const auto add = [&](double a, double b, double r) {
    x.push_back(static_cast<float>(a));
    y.push_back(static_cast<float>(b));
    want.push_back(static_cast<float>(r));
  };
  for (int base = 1; base <= 300; ++base) {
    double r = 1;
    for (int e = 0; r < 0x1p24; ++e, r *= base) {
      add(base, e, r);
      add(-base, e, e % 2 == 0 ? r : -r);
      if (base == 1 && e == 40) break;
    }
  }
  for (int root = 1; root <= 4000; ++root) add(static_cast<double>(root) * root, 0.5, root);
  for (int e = -149; e <= 127; ++e) add(2, e, std::ldexp(1.0, e));
  const std::vector<float> got = run<float>(*find("pow", DType::f32), jit::Target::host(), x, y);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], want[i]) << x[i] << " ^ " << y[i];
}

TEST(Vecmath, HugeAnglesAreReducedExactly) {
  // sin(1e22) = -0.8522008497671888... is in many papers; 6381956970095103 2^797 is the double closest to a multiple of pi/2.
  const std::vector<double> x = {0x1p120, 1e22, std::ldexp(6381956970095103.0, 797)};
  const ref::Number closest(x[2]);
  ref::Number exact;
  mpfr_cos(exact.value, closest.value, MPFR_RNDN);
  const std::vector<double> cosine = run<double>(*find("cos", DType::f64), jit::Target::host(), x, x);
  EXPECT_LE(ref::error_ulp(ref::kF64, cosine[2], exact.value), 0.6);
  const std::vector<double> sine = run<double>(*find("sin", DType::f64), jit::Target::host(), x, x);
  EXPECT_EQ(sine[1], -0.8522008497671888017727);
}

TEST(Vecmath, TextsHoldEachNeedOnceAndDoNotDependOnOrder) {
  const std::string a = texts({{"exp", DType::f32}, {"tanh", DType::f32}, {"exp", DType::f32}});
  EXPECT_EQ(a, texts({{"tanh", DType::f32}, {"exp", DType::f32}}));
  std::size_t count = 0;
  for (std::size_t at = a.find("fl_exp_head_f32(f32x16 rh"); at != std::string::npos;
       at = a.find("fl_exp_head_f32(f32x16 rh", at + 1))
    ++count;
  EXPECT_EQ(count, 1u);
  EXPECT_THROW(texts({{"nosuch", DType::f32}}), Error);
  EXPECT_EQ(find("nosuch", DType::f32), nullptr);
}

}  // namespace
}  // namespace fuselab::codegen::vecmath
#endif
