#include "fuselab/codegen/cpp/expressions.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "fuselab/codegen/cpp/vecmath/vecmath.h"
#include "fuselab/core/error.h"

namespace fuselab::codegen::cpp {
namespace {

using kernel::Stmt;

/// Signed overflow wraps: the arithmetic is done on the unsigned type of the same width.
std::string wrapping(const std::string& op, DType t, const std::string& a, const std::string& b) {
  const std::string u = fmt::format("u{}x16", 8 * size_of(t));
  return fmt::format("({})(({})({}) {} ({})({}))", vector_type(t), u, a, op, u, b);
}

std::string arithmetic(const std::string& op, DType t, const std::string& a, const std::string& b) {
  if (is_bool(t))
    return op == "*"   ? fmt::format("({} & {})", a, b)
           : op == "+" ? fmt::format("({} | {})", a, b)
                       : fmt::format("({} ^ {})", a, b);
  return is_float(t) ? fmt::format("({} {} {})", a, op, b) : wrapping(op, t, a, b);
}

/// A comparison's lanes are as wide as its operands; masks are i32x16.
std::string comparison(const std::string& op, DType t, const std::string& a, const std::string& b) {
  const std::string c = is_bool(t) ? fmt::format("(({} & 1) {} ({} & 1))", a, op, b) : fmt::format("({} {} {})", a, op, b);
  return size_of(t) == 4 || is_bool(t) ? c : fmt::format("__builtin_convertvector({}, i32x16)", c);
}

std::string mask_of(const std::string& c, DType t) {
  return size_of(t) == 4 ? c : fmt::format("__builtin_convertvector({}, i32x16)", c);
}

const std::map<std::string, std::string> kArithmetic = {{"add", "+"}, {"sub", "-"}, {"mul", "*"}};
const std::map<std::string, std::string> kCompare = {{"lt", "<"},  {"le", "<="}, {"gt", ">"},
                                                     {"ge", ">="}, {"eq", "=="}, {"ne", "!="}};
const std::map<std::string, std::string> kBits = {{"and", "&"},  {"or", "|"},  {"xor", "^"},
                                                  {"band", "&"}, {"bor", "|"}, {"bxor", "^"}};
const std::map<std::string, std::string> kRounding = {
    {"floor", "floor"}, {"ceil", "ceil"}, {"trunc", "trunc"}, {"round", "roundeven"}, {"sqrt", "sqrt"}};
const std::map<std::string, int> kDivision = {{"idiv_trunc", 0}, {"idiv_floor", 1}, {"irem", 2}, {"imod_floor", 3}};

}  // namespace

std::string combine_text(const std::string& op, DType t, const std::string& a, const std::string& b, Needs& needs) {
  if (op == "sum") return arithmetic("+", t, a, b);
  if (op == "prod") return arithmetic("*", t, a, b);
  if (op == "any") return fmt::format("({} | {})", a, b);
  if (op == "all") return fmt::format("({} & {})", a, b);
  if (is_bool(t)) return op == "max" ? fmt::format("({} | {})", a, b) : fmt::format("({} & {})", a, b);
  needs.helpers.insert("fold");
  return fmt::format("fl_fold_{}({}, {})", op, a, b);
}

std::string identity_text(const std::string& op, DType t) {
  if (op == "sum" || op == "any") return literal(Scalar(std::int64_t{0}), t);
  if (op == "prod") return literal(Scalar(std::int64_t{1}), t);
  if (op == "all") return "-1";
  const bool low = op == "max" || op == "argmax" || op == "firstmax";
  if (is_bool(t)) return low ? "0" : "-1";
  if (is_float(t)) return literal(Scalar(low ? -__builtin_inf() : __builtin_inf()), t);
  if (t == DType::u8) return low ? "0" : "255";
  const int bits = 8 * size_of(t);
  const std::int64_t least = bits == 64 ? INT64_MIN : -(std::int64_t{1} << (bits - 1));
  return literal(Scalar(low ? least : -(least + 1)), t);
}

namespace {

/// The value of a constant floating operand that is no NaN.
std::optional<double> constant_bound(const kernel::Kernel& k, int i) {
  const Stmt& s = k.stmts[static_cast<std::size_t>(i)];
  if (s.kind != kernel::StmtKind::constant || !is_float(s.type)) return std::nullopt;
  double v = 0;
  if (const auto* d = std::get_if<double>(&s.value))
    v = *d;
  else if (const auto* n = std::get_if<std::int64_t>(&s.value))
    v = static_cast<double>(*n);
  else
    return std::nullopt;
  if (s.type == DType::f32) v = static_cast<double>(static_cast<float>(v));
  return std::isnan(v) ? std::nullopt : std::optional<double>(v);
}

/// Gathers into `low` the low-precision dtype to which every use of statement `self` rounds it, also through selects, which hand
/// it on as it is. False where a use reads the value itself, or two uses round differently.
bool rounded_by_uses(const kernel::Kernel& k, int self, std::optional<DType>& low) {
  for (std::size_t i = 0; i < k.stmts.size(); ++i) {
    const Stmt& use = k.stmts[i];
    for (std::size_t a = 0; a < use.args.size(); ++a) {
      if (use.args[a] != self) continue;
      if (use.kind == kernel::StmtKind::compute && use.op == "select" && a > 0) {
        if (!rounded_by_uses(k, static_cast<int>(i), low)) return false;
        continue;
      }
      if (use.kind != kernel::StmtKind::cast || !is_low_precision(use.type) || (low && *low != use.type)) return false;
      low = use.type;
    }
  }
  return true;
}

/// The low-precision dtype to which every use rounds the result, if there is one.
std::optional<DType> rounded_to(const kernel::Kernel& k, const Stmt& s) {
  if (s.args.size() != 1 || s.type != DType::f32 || vecmath::find(s.op, s.type) == nullptr) return std::nullopt;
  std::optional<DType> low;
  return rounded_by_uses(k, static_cast<int>(&s - k.stmts.data()), low) ? low : std::nullopt;
}

/// Does the operand come from that dtype? The function must then give its correctly rounded value, not only a good f32.
bool comes_from(const kernel::Kernel& k, const Stmt& s, DType low) {
  const Stmt& from = k.stmts[s.args[0]];
  return from.kind == kernel::StmtKind::cast && k.stmts[from.args[0]].type == low;
}

std::string compute_text_as(const kernel::Kernel& k, Stmt s, const char* op, const std::vector<std::string>& args,
                            const std::string& active, Needs& needs) {
  s.op = op;
  return compute_text(k, s, args, active, needs);
}

}  // namespace

std::string compute_text(const kernel::Kernel& k, const Stmt& s, const std::vector<std::string>& args, const std::string& active,
                         Needs& needs) {
  const std::string& op = s.op;
  const DType t = k.stmts[s.args.back()].type;  // of the operands; select's condition comes first
  const std::string& a = args[0];
  const std::string b = args.size() > 1 ? args[1] : "";
  if (auto it = kArithmetic.find(op); it != kArithmetic.end()) return arithmetic(it->second, t, a, b);
  if (auto it = kCompare.find(op); it != kCompare.end()) return comparison(it->second, t, a, b);
  if (auto it = kBits.find(op); it != kBits.end()) {
    const bool kept = op[0] == 'b' && (t == DType::i32 || t == DType::i64);  // see fl_keep
    return fmt::format("{}({} {} {})", kept ? "fl_keep" : "", a, it->second, b);
  }
  if (op == "not" || op == "bnot") return fmt::format("~{}", a);
  if (op == "select") return select(a, b, args[2], t);
  if (op == "relu") return select(comparison("<", t, a, splat("0", t)), splat("0", t), a, t);
  // The bits of a float are roughly its logarithm: halved or negated by integer arithmetic they give 1/sqrt(x) within 3.5 % and
  // 1/x within 5.1 %. The first constant is that of C. Lomont, "Fast inverse square root", 2003; the second was searched for.
  if (t == DType::f32 && op == "rsqrt_seed") return fmt::format("fl_float(0x5f375a86 - (fl_bits({}) >> 1))", a);
  if (t == DType::f32 && op == "recip_seed") return fmt::format("fl_float(0x7ef311c7 - fl_bits({}))", a);
  if (is_float(t)) {
    if (op == "div") return fmt::format("({} / {})", a, b);
    if (op == "neg") return fmt::format("-{}", a);
    if (op == "abs") return fmt::format("fl_abs({})", a);
    if (op == "fma") return fmt::format("fl_fma({}, {}, {})", a, b, args[2]);
    if (op == "recip") return fmt::format("({} / {})", splat("1", t), a);
    if (auto it = kRounding.find(op); it != kRounding.end()) return fmt::format("__builtin_elementwise_{}({})", it->second, a);
    if (op == "isnan") return mask_of(fmt::format("({} != {})", a, a), t);
    if (op == "isinf") return mask_of(fmt::format("(fl_abs({}) == {})", a, literal(Scalar(__builtin_inf()), t)), t);
    if (op == "isfinite") return mask_of(fmt::format("(fl_abs({}) < {})", a, literal(Scalar(__builtin_inf()), t)), t);
    if (op == "signbit") return mask_of(fmt::format("(fl_bits({}) < 0)", a), t);
    if (op == "copysign") return fmt::format("fl_with_sign({}, {})", a, b);
  } else {
    if (op == "neg") return wrapping("-", t, splat("0", t), a);
    if (op == "abs") return t == DType::u8 ? a : fmt::format("({} < 0 ? {} : {})", a, wrapping("-", t, splat("0", t), a), a);
    if (op == "isnan" || op == "isinf") return "(i32x16)(0)";
    if (op == "isfinite") return "(i32x16)(-1)";
    if (op == "signbit") return mask_of(fmt::format("({} < 0)", a), t);
    if (op == "floor" || op == "ceil" || op == "trunc" || op == "round") return a;
    if (op == "fma") return arithmetic("+", t, arithmetic("*", t, a, b), args[2]);
    if (op == "shl" || op == "shr") {
      needs.helpers.insert("shift");
      return fmt::format("fl_{}({}, {})", op, a, b);
    }
    if (op == "ipow") {
      needs.helpers.insert("ipow");
      return fmt::format("fl_ipow({}, {})", a, b);
    }
    if (auto it = kDivision.find(op); it != kDivision.end()) {
      needs.helpers.insert("idiv");
      return fmt::format("fl_idiv({}, {}, {}, {}, status)", a, b, active, it->second);
    }
    if (op == "check_index") {
      needs.helpers.insert("check_index");
      return fmt::format("fl_check_index({}, {}, {}, status)", a, b, active);
    }
  }
  if (op == "min" || op == "max") {
    if (is_bool(t)) return combine_text(op, t, a, b, needs);
    if (const auto bound = constant_bound(k, s.args[1])) {
      // One comparison: a NaN in `a` fails it and stays; at zero the side that keeps -0 below +0 is chosen.
      const bool minus_zero = *bound == 0 && std::signbit(*bound);
      const char* beyond = op == "max" ? (minus_zero ? "<" : "<=") : (minus_zero ? ">=" : ">");
      return fmt::format("({0} {1} {2} ? {2} : {0})", a, beyond, b);
    }
    needs.helpers.insert("minmax");
    return fmt::format("fl_{}({}, {})", op, a, b);
  }
  if (op == "rsqrt" && vecmath::find(op, t) == nullptr)
    return fmt::format("({} / __builtin_elementwise_sqrt({}))", splat("1", t), a);
  if (op == "exp_sum" && t == DType::f64) return compute_text_as(k, s, "exp", args, active, needs);
  if (op == "quotient" && t == DType::f64) return fmt::format("({} / {})", a, b);
  const vecmath::Function* f = is_float(t) ? vecmath::find(op, t) : nullptr;
  DType function_type = t;
  std::string function = op;
  if (const auto low = rounded_to(k, s)) {
    const std::string name = comes_from(k, s, *low) ? op : "_" + op + "_to";
    if (const auto* narrow = vecmath::find(name, *low)) {
      f = narrow;
      function = name;
      function_type = *low;
    }
  }
  if (f == nullptr)
    fail("kernel.unsupported", "kernel {}: no code for {} in {}; keep that operator out of the block (skip_ops)", k.name, op,
         name(t));
  needs.functions.emplace_back(function, function_type);
  std::string joined;
  for (const std::string& x : args) joined += (joined.empty() ? "" : ", ") + x;
  return fmt::format("{}({})", f->symbol, joined);
}

}  // namespace fuselab::codegen::cpp
