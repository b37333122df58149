// Measures the vector-math texts, compiled for two instruction sets, against the reference: error in ulp, special values, equal
// bits.
//
//   vecmath_exhaustive LIB LIB2 [--only NAME]... [--type f32|f64|f16|bf16]... [--stride N] [--samples N]
//
// LIB, LIB2: shared objects compiled from vecmath_dump's output. f32 functions of one argument see every stride-th bit pattern
// (1: all 2^32), f16 and bf16 all 2^16 inputs (compute in f32, round once; must be the correctly rounded value), f64 and
// functions of two arguments random ones. One line per function and type, as a Markdown table. Exit status 1 if bits or special
// values differ.
#include <dlfcn.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "vecmath_reference.h"

namespace ref = vecmath_reference;

namespace {

struct Options {
  std::vector<void*> libraries;
  std::set<std::string> only, types;
  std::uint64_t stride = 1, samples = 200000;
};

template <typename T>
using Loop = void (*)(const T*, const T*, T*, long);

struct Result {
  std::uint64_t inputs = 0, special_wrong = 0, bits_differ = 0, hash = 1469598103934665603ull, counted = 0;
  double worst = 0, worst_x = 0, worst_y = 0, sum = 0;
  std::vector<double> examples;
};

template <typename T>
struct Bits;
template <>
struct Bits<float> {
  using Int = std::uint32_t;
  static constexpr ref::Format format = ref::kF32;
};
template <>
struct Bits<double> {
  using Int = std::uint64_t;
  static constexpr ref::Format format = ref::kF64;
};

/// NaN for NaN, equal infinities and zero signs; sets `finite` when an ulp error makes sense.
bool special_right(double y, double exact_rounded, bool* finite) {
  *finite = std::isfinite(y) && std::isfinite(exact_rounded);
  if (std::isnan(exact_rounded)) return std::isnan(y);
  if (std::isinf(exact_rounded)) return y == exact_rounded;
  if (!std::isfinite(y)) return false;
  if (exact_rounded == 0 && y == 0) return std::signbit(y) == std::signbit(exact_rounded);
  return true;
}

template <typename T>
void compare(const ref::Reference& r, const std::vector<T>& a, const std::vector<T>& b, const std::vector<Loop<T>>& loops,
             Result* result) {
  using Int = typename Bits<T>::Int;
  std::vector<T> y(a.size()), y2(a.size());
  loops[0](a.data(), b.data(), y.data(), static_cast<long>(a.size()));
  if (loops.size() > 1) loops[1](a.data(), b.data(), y2.data(), static_cast<long>(a.size()));
  ref::Number exact;
  for (std::size_t i = 0; i < a.size(); ++i) {
    Int bits, bits2;
    std::memcpy(&bits, &y[i], sizeof bits);
    std::memcpy(&bits2, &y2[i], sizeof bits);
    if (std::isnan(y[i])) bits = 0;  // which NaN is not promised
    if (std::isnan(y2[i])) bits2 = 0;
    result->hash = (result->hash ^ bits) * 1099511628211ull;
    if (loops.size() > 1 && bits != bits2) ++result->bits_differ;
    bool finite;
    double error;
    if constexpr (sizeof(T) == 4) {
      const double e = r.fast(a[i], b[i]);
      if (!special_right(y[i], static_cast<float>(e), &finite)) {
        ++result->special_wrong;
        if (result->examples.size() < 4) result->examples.push_back(a[i]);
        continue;
      }
      error = finite ? ref::error_ulp(ref::kF32, y[i], e) : 0;
    } else {
      const ref::Number x(a[i]), w(b[i]);
      r.exact(exact.value, x.value, w.value);
      if (!special_right(y[i], ref::rounded(ref::kF64, exact.value), &finite)) {
        ++result->special_wrong;
        if (result->examples.size() < 4) result->examples.push_back(a[i]);
        continue;
      }
      error = finite ? ref::error_ulp(ref::kF64, y[i], exact.value) : 0;
    }
    if (!finite) continue;
    ++result->counted;
    result->sum += error;
    if (error > result->worst) {
      result->worst = error;
      result->worst_x = a[i];
      result->worst_y = b[i];
    }
  }
  result->inputs += a.size();
}

template <typename T>
std::vector<T> specials() {
  std::vector<T> s = {0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5,  -1.5, 2.0,  -2.0,   3.0,   -3.0,   4.0,        -5.0,
                      7.0, 10.0, 0.1, 80,   -80, 100,  -100, 1e-5, 20.0, 1000.0, 5.0e5, -5.0e5, 16777215.0, 16777216.0};
  s.push_back(INFINITY);
  s.push_back(-INFINITY);
  s.push_back(NAN);
  s.push_back(std::numeric_limits<T>::max());
  s.push_back(std::numeric_limits<T>::lowest());
  s.push_back(std::numeric_limits<T>::min());
  s.push_back(std::numeric_limits<T>::denorm_min());
  s.push_back(-std::numeric_limits<T>::denorm_min());
  return s;
}

template <typename T>
std::vector<Loop<T>> loops_of(const Options& o, const std::string& name, const char* type) {
  std::vector<Loop<T>> loops;
  for (void* lib : o.libraries) {
    void* f = dlsym(lib, ("run_" + name + "_" + type).c_str());
    if (f != nullptr) loops.push_back(reinterpret_cast<Loop<T>>(f));
  }
  return loops;
}

/// Half of the draws have any exponent, half lie where functions are usually asked.
template <typename T>
T draw(std::mt19937_64& random) {
  using Int = typename Bits<T>::Int;
  const std::uint64_t r = random();
  if (r & 1) {
    const Int bits = static_cast<Int>(random());
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
  const double u = std::ldexp(static_cast<double>(random() >> 11), -53) * 2 - 1;
  return static_cast<T>(std::ldexp(u, static_cast<int>(r >> 8 & 15) - 7));
}

template <typename T>
Result measure(const ref::Reference& r, const Options& o, const std::vector<Loop<T>>& loops) {
  Result result;
  std::vector<T> a, b;
  const auto flush = [&](bool all) {
    if (a.size() < 65536 && !all) return;
    while (a.size() % 16 != 0) a.push_back(1), b.push_back(1);
    if (!a.empty()) compare(r, a, b, loops, &result);
    a.clear();
    b.clear();
  };
  for (const T x : specials<T>()) {
    for (const T y : specials<T>()) {
      a.push_back(x);
      b.push_back(y);
      if (r.args == 1) break;
    }
  }
  flush(true);
  if (r.args == 1 && sizeof(T) == 4) {
    for (std::uint64_t pattern = 0; pattern < (1ull << 32); pattern += o.stride) {
      const std::uint32_t bits = static_cast<std::uint32_t>(pattern);
      float x;
      std::memcpy(&x, &bits, 4);
      a.push_back(static_cast<T>(x));
      b.push_back(1);
      flush(false);
    }
  } else {
    std::mt19937_64 random(20240229);
    for (std::uint64_t i = 0; i < o.samples; ++i) {
      a.push_back(draw<T>(random));
      b.push_back(draw<T>(random));
      flush(false);
    }
  }
  flush(true);
  return result;
}

float from_pattern(std::uint32_t bits, bool bf16) {
  if (bf16) {
    bits <<= 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                               : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}

/// f32 result rounded to the format, against the exact value rounded once. Examples are the inputs that come out wrong.
Result measure_low(const ref::Reference& r, const std::vector<Loop<float>>& loops, bool bf16) {
  const ref::Format& format = bf16 ? ref::kBF16 : ref::kF16;
  Result result;
  std::vector<float> a, b, y(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) a.push_back(from_pattern(i, bf16)), b.push_back(1);
  loops[0](a.data(), b.data(), y.data(), 65536);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double want = ref::rounded_value(r, format, a[i]), have = ref::rounded(format, static_cast<double>(y[i]));
    if (std::isnan(want) ? !std::isnan(have) : want != have || std::signbit(want) != std::signbit(have)) {
      ++result.special_wrong;
      result.examples.push_back(a[i]);
    }
  }
  result.inputs = 65536;
  return result;
}

int usage() {
  std::fprintf(stderr,
               "usage: vecmath_exhaustive LIB LIB2 [--only NAME]... [--type f32|f64|f16|bf16]... [--stride N] [--samples N]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--", 0) == 0) {
      if (i + 1 == argc) return usage();
      const char* value = argv[++i];
      if (arg == "--only")
        o.only.insert(value);
      else if (arg == "--type")
        o.types.insert(value);
      else if (arg == "--stride")
        o.stride = std::strtoull(value, nullptr, 10);
      else if (arg == "--samples")
        o.samples = std::strtoull(value, nullptr, 10);
      else
        return usage();
    } else {
      void* lib = dlopen(arg.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (lib == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 2;
      }
      o.libraries.push_back(lib);
    }
  }
  if (o.libraries.empty() || o.stride == 0) return usage();
  bool failed = false;
  std::printf(
      "| function | type | inputs | max ulp | at | mean ulp | wrong specials | bits differ | hash "
      "|\n|---|---|---|---|---|---|---|---|---|\n");
  for (const ref::Reference& r : ref::kReferences) {
    if (!o.only.empty() && o.only.count(r.name) == 0) continue;
    for (const char* type : {"f32", "f64", "f16", "bf16"}) {
      if (!o.types.empty() && o.types.count(type) == 0) continue;
      Result result;
      const bool low = std::strcmp(type, "f16") == 0 || std::strcmp(type, "bf16") == 0;
      if (std::strcmp(type, "f64") == 0) {
        const auto loops = loops_of<double>(o, r.name, type);
        if (loops.empty()) continue;
        result = measure<double>(r, o, loops);
      } else {
        auto loops = low ? loops_of<float>(o, r.name, type) : loops_of<float>(o, r.name, "f32");
        if (low && loops.empty()) loops = loops_of<float>(o, r.name, "f32");
        if (loops.empty() || (low && r.args != 1)) continue;
        result = low ? measure_low(r, loops, type[0] == 'b') : measure<float>(r, o, loops);
      }
      if (low) {
        std::printf("| %s | %s | %" PRIu64 " | | | | %" PRIu64 " | | |\n", r.name, type, result.inputs, result.special_wrong);
      } else {
        std::printf("| %s | %s | %" PRIu64 " | %.4f | %a", r.name, type, result.inputs, result.worst, result.worst_x);
        if (r.args == 2) std::printf(", %a", result.worst_y);
        std::printf(" | %.5f | %" PRIu64 " | %" PRIu64 " | %016" PRIx64 " |\n", result.counted ? result.sum / result.counted : 0,
                    result.special_wrong, result.bits_differ, result.hash);
      }
      for (const double x : result.examples) std::printf("<!-- wrong: %s %s %a -->\n", r.name, type, x);
      std::fflush(stdout);
      failed = failed || result.special_wrong != 0 || result.bits_differ != 0;
    }
  }
  return failed ? 1 : 0;
}
