// The table's fp64 formulas against MPFR at points where formulas usually go wrong.
#ifdef FUSELAB_HAVE_MPFR
#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <map>
#include <string>

#include "fuselab/core/float16.h"
#include "fuselab/ops/op.h"

namespace fuselab {
namespace {

using Function = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);

int sigmoid(mpfr_t out, const mpfr_t x, mpfr_rnd_t r) {
  mpfr_neg(out, x, r);
  mpfr_exp(out, out, r);
  mpfr_add_ui(out, out, 1, r);
  return mpfr_ui_div(out, 1, out, r);
}
int silu(mpfr_t out, const mpfr_t x, mpfr_rnd_t r) {
  mpfr_t s;
  mpfr_init2(s, 300);
  sigmoid(s, x, r);
  const int done = mpfr_mul(out, s, x, r);
  mpfr_clear(s);
  return done;
}
int gelu(mpfr_t out, const mpfr_t x, mpfr_rnd_t r) {
  mpfr_t s;
  mpfr_init2(s, 300);
  mpfr_sqrt_ui(s, 2, r);
  mpfr_div(s, x, s, r);
  mpfr_neg(s, s, r);
  mpfr_erfc(s, s, r);
  mpfr_mul(s, s, x, r);
  const int done = mpfr_div_ui(out, s, 2, r);
  mpfr_clear(s);
  return done;
}

TEST(Golden, FormulasAgreeWithMpfr) {
  const std::map<std::string, Function> functions = {
      {"exp", mpfr_exp},     {"exp2", mpfr_exp2},   {"expm1", mpfr_expm1}, {"log", mpfr_log},   {"log2", mpfr_log2},
      {"log10", mpfr_log10}, {"log1p", mpfr_log1p}, {"sin", mpfr_sin},     {"cos", mpfr_cos},   {"tan", mpfr_tan},
      {"tanh", mpfr_tanh},   {"erf", mpfr_erf},     {"erfc", mpfr_erfc},   {"sqrt", mpfr_sqrt}, {"rsqrt", mpfr_rec_sqrt},
      {"sigmoid", sigmoid},  {"silu", silu},        {"gelu", gelu},
  };
  const double points[] = {1e-300, 1e-30, 1e-8, 1e-7, 1e-3,  0.0616, 0.1,  0.5,  0.7071, 1,   1.5, 2.75,
                           3.25,   5,     8.5,  13,   20,    25.5,   40,   88.5, 103,    355, 1e5, -1e-300,
                           -1e-8,  -1e-3, -0.1, -0.5, -0.75, -1.278, -2.5, -5,   -10,    -20, -37, -80};
  mpfr_t x, y;
  mpfr_init2(x, 300);
  mpfr_init2(y, 300);
  for (const auto& [name, function] : functions) {
    const ops::Op* op = ops::find(name);
    ASSERT_NE(op, nullptr) << name;
    Attrs attrs;
    for (const ops::AttrSpec& a : op->attrs) {
      if (a.fallback) attrs[a.name] = *a.fallback;
    }
    for (const double p : points) {
      mpfr_set_d(x, p, MPFR_RNDN);
      function(y, x, MPFR_RNDN);
      const double want = mpfr_get_d(y, MPFR_RNDN), got = op->fp64(std::span<const double>(&p, 1), attrs);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << name << " at " << p;
      } else if (std::isfinite(want) && std::fabs(want) > 1e-290) {
        // Well inside half an ULP of f32; the tails' conditioning is x^2 ULP of f64.
        EXPECT_LE(std::fabs(got - want), (4 + p * p) * ulp_of(DType::f64, want)) << name << " at " << p;
      } else {
        EXPECT_TRUE(got == want || std::fabs(got - want) <= 1e-290) << name << " at " << p;
      }
    }
  }
  mpfr_clear(x);
  mpfr_clear(y);
}

}  // namespace
}  // namespace fuselab
#endif
