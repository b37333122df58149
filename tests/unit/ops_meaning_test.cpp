// The fp64 meanings against PyTorch's float64 results (tests/python/op_values.py made the file).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "fuselab/ops/op.h"

namespace fuselab::ops {
namespace {

using Json = nlohmann::json;

double number(const Json& j) { return j.is_string() ? std::strtod(j.get<std::string>().c_str(), nullptr) : j.get<double>(); }
std::vector<double> numbers(const Json& j) {
  std::vector<double> v;
  for (const Json& x : j) v.push_back(number(x));
  return v;
}

Attrs attributes(const Op& op, const Json& given) {
  Attrs attrs;
  for (const AttrSpec& a : op.attrs) {
    if (a.fallback) attrs[a.name] = *a.fallback;
    if (!given.contains(a.name)) continue;
    const Json& v = given[a.name];
    if (v.is_string())
      attrs[a.name] = v.get<std::string>();
    else if (v.is_boolean())
      attrs[a.name] = v.get<bool>();
    else
      attrs[a.name] = v.get<double>();
  }
  return attrs;
}

/// PyTorch's float64 kernels are good to a few ULP of the terms they add, not of a result that cancelled.
bool close(double got, double want, double scale) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= 1e-13 * std::max(std::fabs(want), scale);
}

TEST(OpMeaning, MatchesPyTorchInFloat64) {
  std::ifstream file(FUSELAB_TEST_DIR "/cases/op_meanings.json");
  const Json cases = Json::parse(file);
  std::set<std::string> covered;
  for (const Json& c : cases) {
    const std::string name = c["op"];
    const Op* op = find(name);
    ASSERT_NE(op, nullptr) << name;
    SCOPED_TRACE(c.dump());
    covered.insert(name);
    const Attrs attrs = attributes(*op, c["attrs"]);
    if (op->kind == Kind::pointwise) {
      const std::vector<double> args = numbers(c["args"]);
      double scale = 0;  // of the largest argument, for forms that cancel in eager (1 + erf in the tail of gelu)
      for (double a : args) scale = std::max(scale, std::fabs(a));
      const double got = op->fp64(args, attrs), want = number(c["out"][0]);
      // PyTorch multiplies by a 1/6 that was rounded to float.
      const double slack = name == "hardsigmoid_backward" ? 1e6 * std::fabs(want) : 0.01 * scale;
      EXPECT_TRUE(close(got, want, slack)) << got << " against " << want;
      continue;
    }
    std::vector<std::vector<double>> args, out;
    for (const Json& a : c["args"]) args.push_back(numbers(a));
    for (const Json& o : c["out"]) out.emplace_back(o.size());
    const std::vector<std::span<const double>> in_spans(args.begin(), args.end());
    const std::vector<std::span<double>> out_spans(out.begin(), out.end());
    op->fp64_row(in_spans, out_spans, attrs);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::vector<double> want = numbers(c["out"][i]);
      for (std::size_t k = 0; k < want.size(); ++k)
        EXPECT_TRUE(close(out[i][k], want[k], 4)) << out[i][k] << " against " << want[k];
    }
  }
  for (const Op& op : table()) {
    const bool has_values = op.kind == Kind::pointwise || op.kind == Kind::reduce;
    if (!has_values || op.lower == "-" || op.name == "cast" || op.name == "copy") continue;
    EXPECT_TRUE(covered.count(op.name)) << op.name;
  }
}

}  // namespace
}  // namespace fuselab::ops
