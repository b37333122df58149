// Reduce operators: the table's fp64 formula row by row, error bounds from the recipe's running error analysis.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fuselab/core/error.h"
#include "fuselab/core/tensor.h"
#include "fuselab/graph/bind.h"
#include "fuselab/graph/infer.h"
#include "fuselab/ops/recipe.h"
#include "fuselab/reference/operators.h"
#include "fuselab/reference/recipe_error.h"

namespace fuselab::reference {
namespace {

constexpr std::int64_t kBatchElements = 4096;

/// How the elements of the first tensor fall into rows: row r has the places [r * n, (r + 1) * n) of a permuted order.
struct Rows {
  std::vector<std::int64_t> sizes;  ///< of the first tensor
  std::vector<std::size_t> order;   ///< its dimensions, kept ones first
  std::int64_t rows = 1, n = 1;
  ops::ReduceDims kind = ops::ReduceDims::none;
  std::int64_t groups = 0;

  std::vector<std::int64_t> places(const std::vector<std::int64_t>& strides) const {
    std::vector<std::int64_t> s, t;
    for (const std::size_t d : order) {
      s.push_back(sizes[d]);
      t.push_back(strides[d]);
    }
    return offsets(s, t);
  }
};

Rows rows_of(const Graph& g, const Node& node, const std::vector<std::int64_t>& sizes) {
  Rows r;
  r.sizes = sizes;
  r.kind = node.op->reduce;
  std::vector<int> reduced = reduced_dims(g, node);
  const auto is_reduced = [&](std::size_t d) {
    return std::find(reduced.begin(), reduced.end(), static_cast<int>(d)) != reduced.end();
  };
  if (r.kind == ops::ReduceDims::group) {
    const Attr& attr = node.attrs.at("num_groups");
    const auto* e = std::get_if<Expr>(&attr);
    r.groups = e ? e->value() : std::get<std::int64_t>(attr);
    r.order.resize(sizes.size());
    std::iota(r.order.begin(), r.order.end(), 0);
    r.rows = sizes[0] * r.groups;
    r.n = sizes[1] / r.groups;
    for (std::size_t d = 2; d < sizes.size(); ++d) r.n *= sizes[d];
    return r;
  }
  for (const bool want : {false, true}) {
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (is_reduced(d) != want) continue;
      r.order.push_back(d);
      (want ? r.n : r.rows) *= sizes[d];
    }
  }
  return r;
}

/// The places of an argument's elements in row order.
std::vector<std::int64_t> argument_places(const Rows& r, const Array& a, const ops::ArgSpec& spec) {
  const bool per_channel = spec.channel || (r.kind == ops::ReduceDims::batch && a.sizes.size() == 1 && r.sizes.size() > 1);
  if (r.kind == ops::ReduceDims::group && !spec.channel && a.count == r.rows && a.sizes != r.sizes) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(r.rows * r.n));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(i) / r.n;
    return out;
  }
  if (per_channel) {
    std::vector<std::int64_t> strides(r.sizes.size(), 0);
    if (strides.size() > 1) strides[1] = 1;
    return r.places(strides);
  }
  return r.places(broadcast_strides(a.sizes, r.sizes));
}

struct Input {
  const Array* array = nullptr;
  double number = 0;
  std::int64_t integer = 0;
  bool present = true, round_first = false;
  std::vector<std::int64_t> places;
};

struct Setup {
  Rows rows;
  std::vector<Input> inputs;
  std::vector<bool> per_row;                ///< of each result
  std::vector<std::int64_t> result_places;  ///< of results with one element each
  std::vector<const Type*> types;
};

Setup prepare(const Graph& g, const Node& node, const std::vector<Argument>& args, DType compute) {
  Setup s;
  const Array* first = nullptr;
  for (const Argument& a : args) {
    if (a.array) {
      first = a.array;
      break;
    }
  }
  s.rows = rows_of(g, node, first->sizes);
  for (std::size_t k = 0; k < args.size(); ++k) {
    Input in;
    const ops::ArgSpec& spec = node.op->args[k];
    in.present = args[k].present();
    if (args[k].number) {
      in.number = number_as(*args[k].number, is_float(compute) ? compute : DType::f64);
      in.integer = truncate_to_int(in.number);
    } else if (args[k].array) {
      in.array = args[k].array;
      in.places = argument_places(s.rows, *in.array, spec);
      in.round_first = node.op->decides && spec.decides && is_low_precision(in.array->dtype);
    }
    s.inputs.push_back(std::move(in));
  }
  s.result_places = s.rows.places(fuselab::contiguous_strides(s.rows.sizes));
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    const ops::ShapeRule shape = k == 0 ? node.op->shape : node.op->more[k - 1].shape;
    s.per_row.push_back(shape != ops::ShapeRule::same);
    s.types.push_back(&g.values[static_cast<std::size_t>(node.results[k])].type);
  }
  return s;
}

std::vector<Builder> builders(const Setup& s) {
  std::vector<Builder> out;
  for (const Type* t : s.types) {
    const std::vector<std::int64_t> sizes = constant_sizes(t->sizes);
    out.emplace_back(t->dtype, sizes, element_count(sizes));
  }
  return out;
}

std::vector<Array> finish(std::vector<Builder>& out) {
  std::vector<Array> arrays;
  for (Builder& b : out) arrays.push_back(b.finish());
  return arrays;
}

std::vector<Array> run_integer_rows(const Node& node, const Setup& s, const Attrs& attrs, DType arguments) {
  const ops::Op& op = *node.op;
  if (!op.exact_row) fail("reference.op", "{} has no integer meaning in the table", op.name);
  std::vector<Builder> out = builders(s);
  const std::int64_t n = s.rows.n;
  const auto length = static_cast<std::size_t>(n);
  std::vector<std::vector<std::int64_t>> rows(s.inputs.size(), std::vector<std::int64_t>(length));
  const auto evaluate = [&](std::int64_t row, int which) {
    std::vector<std::span<const std::int64_t>> spans;
    for (std::size_t k = 0; k < s.inputs.size(); ++k) {
      const Input& in = s.inputs[k];
      for (std::size_t j = 0; in.present && j < length; ++j) {
        if (!in.array) {
          rows[k][j] = in.integer;
          continue;
        }
        const IntBall b = int_ball_of(*in.array, in.places[static_cast<std::size_t>(row * n) + j], arguments);
        rows[k][j] = which == 0 ? b.v : which < 0 ? b.lo : b.hi;
      }
      spans.emplace_back(rows[k].data(), in.present ? length : 0);
    }
    std::vector<std::vector<std::int64_t>> results;
    std::vector<std::span<std::int64_t>> result_spans;
    for (const bool per_row : s.per_row) results.emplace_back(per_row ? 1 : length);
    for (auto& r : results) result_spans.emplace_back(r);
    op.exact_row(spans, result_spans, attrs);
    return results;
  };
  const bool exact =
      std::all_of(s.inputs.begin(), s.inputs.end(), [](const Input& in) { return !in.array || in.array->exact(); });
  for (std::int64_t row = 0; row < s.rows.rows; ++row) {
    const auto v = evaluate(row, 0);
    const auto lo = exact ? v : evaluate(row, -1), hi = exact ? v : evaluate(row, 1);
    for (std::size_t k = 0; k < v.size(); ++k) {
      for (std::size_t j = 0; j < v[k].size(); ++j) {
        const std::int64_t place = s.per_row[k] ? row : s.result_places[static_cast<std::size_t>(row * n) + j];
        const DType t = s.types[k]->dtype;
        std::int64_t low = std::min({v[k][j], lo[k][j], hi[k][j]}), high = std::max({v[k][j], lo[k][j], hi[k][j]});
        const bool is_index = op.type == ops::TypeRule::index || (k > 0 && op.more[k - 1].type == ops::TypeRule::index);
        if (is_index && !exact) low = 0, high = std::max<std::int64_t>(n - 1, 0);
        out[k].set_int(place, wrap(t, v[k][j]), wrap(t, low), wrap(t, high));
      }
    }
  }
  return finish(out);
}

/// Rows [begin, end) of the float path.
class Batch {
 public:
  Batch(const Node& node, const Setup& s, const Attrs& attrs, const ops::Recipe& recipe, DType compute, std::int64_t begin,
        std::int64_t end)
      : node_(node), s_(s), attrs_(attrs), recipe_(recipe), compute_(compute), begin_(begin), rows_(end - begin) {
    const auto count = static_cast<std::size_t>(rows_ * s_.rows.n);
    balls_.resize(s_.inputs.size());
    flags_.resize(s_.inputs.size());
    for (std::size_t k = 0; k < balls_.size(); ++k) {
      const Input& in = s_.inputs[k];
      if (!in.present) continue;
      balls_[k].assign(count, {in.number, in.number, in.number});
      if (!in.array) continue;
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t at = in.places[static_cast<std::size_t>(begin_ * s_.rows.n) + i];
        Ball& b = balls_[k][i] = ball_of(*in.array, at, compute_);
        if (in.round_first) round_for_decision(in.array->dtype, b);
        exact_ = exact_ && b.exact();
        if (in.array->flagged(at)) {
          if (flags_[k].empty()) flags_[k].resize(count);
          flags_[k][i] = 1;
          flagged_ = true;
        }
      }
    }
  }

  void run(std::vector<Builder>& out, const Policy& policy) {
    const auto values = meaning([](const Ball& b) { return b.v; });
    if (policy.model) {
      put_model(values, out, policy);
      return;
    }
    const auto centres = exact_ ? values : meaning(centre);
    const std::vector<RowBalls> errors = follow(false);
    std::vector<RowBalls> pinned;
    if (flagged_) pinned = follow(true);
    for (std::size_t k = 0; k < values.size(); ++k) {
      for (std::size_t i = 0; i < values[k].size(); ++i) {
        const Ball& e = error_at(errors[k], k, i);
        bool undecided = false;
        Ball r = around(e, values[k][i], centres[k][i]);
        if (flagged_) {
          const Ball& p = error_at(pinned[k], k, i);
          undecided = !(e.hi - e.lo <= 4 * std::max(p.hi - p.lo, 4 * ulp_of(compute_, e.v)));
        }
        const DType t = s_.types[k]->dtype;
        if (r.lo == 0 && r.hi == 0 && node_.op->ulp > 0) r.lo = -0.0, r.hi = 0.0;  // what cancels may leave either zero
        if (is_float(t)) settle(wider_of(t), e.lo == e.hi ? 0 : 0.5, r, undecided);
        store(out[k], t, place(k, i), r, undecided, policy);
      }
    }
  }

 private:
  static double centre(const Ball& b) {
    if (b.lo == b.hi || !std::isfinite(b.lo) || !std::isfinite(b.hi)) return b.lo == b.hi ? b.lo : b.v;
    return b.lo + 0.5 * (b.hi - b.lo);
  }
  /// Statistics that a recipe leaves in f32 beside f16 results keep the compute dtype until they are stored.
  DType wider_of(DType t) const { return size_of(t) < size_of(compute_) ? compute_ : t; }
  std::int64_t place(std::size_t k, std::size_t i) const {
    if (s_.per_row[k]) return begin_ + static_cast<std::int64_t>(i);
    return s_.result_places[static_cast<std::size_t>(begin_ * s_.rows.n) + i];
  }
  const Ball& error_at(const RowBalls& r, std::size_t k, std::size_t i) const {
    static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    static constexpr Ball kNothing{kNaN, kNaN, kNaN};  // a statistic of no elements
    const auto n = static_cast<std::size_t>(s_.rows.n);
    if (n == 0 && !r.per_row) return kNothing;
    if (r.per_row) return r.at[s_.per_row[k] ? i : i / n];
    return r.at[s_.per_row[k] ? i * n : i];
  }
  /// The recipe's ends around its own plain value, moved to the independent formula's value.
  Ball around(const Ball& e, double value, double centre) const {
    const double share = compute_ == DType::f64 ? 2 : 1;  // the meaning's own rounding is of the same size there
    if (std::isnan(e.lo) && std::isnan(e.hi)) {
      // Certainly NaN in the compute dtype. When plain double has NaN too but the meaning has not, the recipe is wrong: keep the
      // value.
      if (std::isnan(e.v) && !std::isnan(value)) return {value, value, value};
      return {value, e.lo, e.hi};
    }
    if (std::isnan(value) || std::isnan(centre)) return e.lo == e.hi ? Ball{value, centre, centre} : Ball{value, e.lo, e.hi};
    if (e.lo == e.hi && std::isinf(e.lo)) return {value, e.lo, e.lo};
    if (!std::isfinite(e.v)) return {value, e.lo, e.hi};  // an overflow that the ends leave open: nothing to move them by
    const auto shifted = [&](double end) {
      if (std::isinf(end)) return end;
      const double moved = centre + share * (end - e.v);
      // An end at zero stays there: a rest of the subtraction's rounding would exclude the zero of a result that vanishes.
      return end == 0 && std::fabs(moved) <= 1e-12 * std::fabs(centre) ? end : moved;
    };
    return {value, shifted(e.lo), shifted(e.hi)};
  }

  template <typename Pick>
  std::vector<std::vector<double>> meaning(Pick pick) const {
    const auto n = static_cast<std::size_t>(s_.rows.n);
    std::vector<std::vector<double>> columns(balls_.size()), results;
    for (std::size_t k = 0; k < balls_.size(); ++k) {
      columns[k].reserve(balls_[k].size());
      for (const Ball& b : balls_[k]) columns[k].push_back(pick(b));
    }
    for (const bool per_row : s_.per_row) results.emplace_back(static_cast<std::size_t>(rows_) * (per_row ? 1 : n));
    std::vector<std::span<const double>> in(columns.size());
    std::vector<std::span<double>> out(results.size());
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows_); ++row) {
      for (std::size_t k = 0; k < columns.size(); ++k) {
        in[k] = s_.inputs[k].present ? std::span<const double>(columns[k]).subspan(row * n, n) : std::span<const double>();
      }
      for (std::size_t k = 0; k < results.size(); ++k) {
        const std::size_t width = s_.per_row[k] ? 1 : n;
        out[k] = std::span<double>(results[k]).subspan(row * width, width);
      }
      node_.op->fp64_row(in, out, attrs_);
    }
    return results;
  }
  std::vector<RowBalls> follow(bool pin_flagged) const {
    std::map<std::string, RowBalls> names;
    for (std::size_t k = 0; k < balls_.size(); ++k) {
      if (!s_.inputs[k].present) continue;
      RowBalls r{false, is_float(compute_) ? compute_ : DType::f32, balls_[k]};
      if (s_.inputs[k].array && is_bool(s_.inputs[k].array->dtype)) r.type = DType::boolean;
      for (std::size_t i = 0; i < r.at.size(); ++i) {
        Ball& b = r.at[i];
        if (pin_flagged && !flags_[k].empty() && flags_[k][i]) b.lo = b.hi = b.v;
        b.v = centre(b);
      }
      names.emplace(node_.op->args[k].name, std::move(r));
    }
    return follow_recipe(recipe_, std::move(names), compute_, rows_, s_.rows.n);
  }
  void put_model(const std::vector<std::vector<double>>& values, std::vector<Builder>& out, const Policy& policy) const {
    for (std::size_t k = 0; k < values.size(); ++k) {
      for (std::size_t i = 0; i < values[k].size(); ++i) {
        const DType t = s_.types[k]->dtype;
        const double v = is_float(t) ? round_to(t, round_to(wider_of(t), values[k][i])) : values[k][i];
        store(out[k], t, place(k, i), {v, v, v}, false, policy);
      }
    }
  }

  const Node& node_;
  const Setup& s_;
  const Attrs& attrs_;
  const ops::Recipe& recipe_;
  DType compute_;
  std::int64_t begin_, rows_;
  std::vector<std::vector<Ball>> balls_;
  std::vector<std::vector<std::uint8_t>> flags_;
  bool exact_ = true, flagged_ = false;
};

// Extremes have no value for no elements; PyTorch refuses them too.
void refuse_empty(const ops::Op& op, const Setup& s) {
  if (s.rows.n > 0 || s.rows.rows == 0 || !s.per_row[0]) return;
  for (const char* start : {"rmax(", "rmin(", "rfirst", "rarg"}) {
    if (op.lower.starts_with(start)) fail("call.empty_reduction", "{} over a dimension of size 0 has no value", op.name);
  }
}

}  // namespace

std::vector<Array> run_reduce(const Graph& g, const Node& node, const std::vector<Argument>& args, const Policy& policy) {
  const ops::Op& op = *node.op;
  const DType arguments = argument_type(g, node), compute = compute_type(arguments);
  const Setup s = prepare(g, node, args, compute);
  const Attrs attrs = attributes_in(node, op.decides ? arguments : compute);
  refuse_empty(op, s);
  if (!is_float(arguments)) return run_integer_rows(node, s, attrs, arguments);
  if (!op.fp64_row) fail("reference.op", "{} has no fp64 meaning in the table", op.name);
  std::vector<ops::ArgState> states;
  for (const Argument& a : args) {
    ops::ArgState state;
    state.present = a.present();
    if (a.number) state.literal = *a.number;
    states.push_back(state);
  }
  const ops::Recipe recipe = ops::instantiate(op, states, attrs, compute);
  std::vector<Builder> out = builders(s);
  const std::int64_t step = std::max<std::int64_t>(1, kBatchElements / std::max<std::int64_t>(1, s.rows.n));
  for (std::int64_t begin = 0; begin < s.rows.rows; begin += step) {
    Batch(node, s, attrs, recipe, compute, begin, std::min(s.rows.rows, begin + step)).run(out, policy);
  }
  return finish(out);
}

}  // namespace fuselab::reference
