#include "fuselab/ops/table_json.h"

#include <nlohmann/json.hpp>
#include <type_traits>
#include <vector>

#include "fuselab/ops/op.h"

namespace fuselab::ops {
namespace {

using Json = nlohmann::ordered_json;

const char* word(Kind k) {
  switch (k) {
    case Kind::pointwise:
      return "pointwise";
    case Kind::reduce:
      return "reduce";
    case Kind::create:
      return "create";
    case Kind::view:
      return "view";
    case Kind::move:
      return "move";
    case Kind::extern_:
      return "extern";
  }
  return "";
}

const char* word(AttrType t) {
  switch (t) {
    case AttrType::boolean:
      return "boolean";
    case AttrType::integer:
      return "integer";
    case AttrType::real:
      return "real";
    case AttrType::string:
      return "string";
    case AttrType::dtype:
      return "dtype";
    case AttrType::ints:
      return "ints";
    case AttrType::expr:
      return "expr";
    case AttrType::scalar:
      return "scalar";
  }
  return "";
}

const char* word(TypeRule t) {
  switch (t) {
    case TypeRule::promote:
      return "promote";
    case TypeRule::promote_float:
      return "promote_float";
    case TypeRule::boolean:
      return "bool";
    case TypeRule::first:
      return "first";
    case TypeRule::int_sum:
      return "int_sum";
    case TypeRule::index:
      return "i64";
    case TypeRule::attr_dtype:
      return "attr_dtype";
    case TypeRule::where_:
      return "where";
    case TypeRule::any_all:
      return "any_all";
    case TypeRule::compute:
      return "compute";
  }
  return "";
}

const char* word(ShapeRule s) {
  switch (s) {
    case ShapeRule::broadcast:
      return "broadcast";
    case ShapeRule::reduce:
      return "reduce";
    case ShapeRule::same:
      return "same";
    case ShapeRule::row:
      return "row";
    case ShapeRule::create:
      return "create";
    case ShapeRule::view:
      return "view";
  }
  return "";
}

const char* word(ReduceDims r) {
  switch (r) {
    case ReduceDims::none:
      return "none";
    case ReduceDims::attr_dims:
      return "dims";
    case ReduceDims::attr_dim:
      return "dim";
    case ReduceDims::trailing:
      return "trailing";
    case ReduceDims::leading:
      return "leading";
    case ReduceDims::group:
      return "group";
    case ReduceDims::batch:
      return "batch";
  }
  return "";
}

Json value(const Attr& attr) {
  return std::visit(
      [](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, DType>)
          return std::string(fuselab::name(v));
        else if constexpr (std::is_same_v<T, Expr>)
          return v.str();
        else if constexpr (std::is_same_v<T, std::vector<Expr>>) {
          Json list = Json::array();
          for (const Expr& e : v) list.push_back(e.str());
          return list;
        } else
          return v;
      },
      attr);
}

}  // namespace

std::string table_json() {
  Json rows = Json::array();
  for (const Op& op : table()) {
    Json row{
        {"name", op.name}, {"kind", word(op.kind)}, {"args", Json::array()}, {"attrs", Json::array()}, {"results", op.results}};
    for (const ArgSpec& a : op.args)
      row["args"].push_back({{"name", a.name}, {"optional", a.optional}, {"scalar_ok", a.scalar_ok}});
    for (const AttrSpec& a : op.attrs) {
      Json attr{{"name", a.name}, {"type", word(a.type)}};
      if (a.fallback) attr["fallback"] = value(*a.fallback);
      row["attrs"].push_back(std::move(attr));
    }
    row["type"] = word(op.type);
    row["shape"] = word(op.shape);
    row["reduce"] = word(op.reduce);
    for (const ResultSpec& r : op.more) {
      row["more"].push_back({{"name", r.name}, {"type", word(r.type)}, {"shape", word(r.shape)}});
    }
    row["lower"] = op.lower;
    row["lower_int"] = op.lower_int;
    row["lower_bool"] = op.lower_bool;
    row["ulp"] = op.ulp;
    row["ulp_f64"] = op.ulp_in(DType::f64);
    row["monotone"] = op.monotone;
    row["period"] = op.period;
    row["decides"] = op.decides;
    row["low_precision_meaning"] = op.low_precision_meaning;
    row["special"] = Json::array();
    for (const Special& s : op.special) row["special"].push_back(s.note);
    row["aten"] = op.aten;
    row["aten_names"] = op.aten_names;
    row["aten_ignored"] = op.aten_ignored;
    row["aten_result"] = op.aten_result;
    row["onnx"] = op.onnx;
    row["ascend_ir"] = op.ascend_ir;
    row["cann"] = op.cann;
    row["doc"] = op.doc;
    rows.push_back(std::move(row));
  }
  return rows.dump();
}

}  // namespace fuselab::ops
