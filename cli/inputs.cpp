#include "cli/inputs.h"

#include <cmath>
#include <numbers>
#include <set>

#include "cli/common.h"
#include "cli/npy.h"
#include "fuselab/core/error.h"
#include "fuselab/core/hash.h"
#include "fuselab/numerics/tensor_file.h"

namespace fuselab::cli {
namespace {

/// A counter-based generator: element i of stream `seed`, whatever is drawn before.
std::uint64_t draw(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t pair[2] = {seed, i};
  return hash64(pair, sizeof pair);
}

double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

std::int64_t value_of(const Expr& e, const Symbols& symbols) {
  try {
    return e.eval(symbols);
  } catch (const Error& error) {
    if (error.code() != "expr.unbound") throw;
    fail("call.symbol", "The size {} has no value; give its symbols with --size NAME=NUMBER.", e.str());
  }
}

std::vector<std::int64_t> values_of(const std::vector<Expr>& list, const Symbols& symbols) {
  std::vector<std::int64_t> out;
  for (const Expr& e : list) out.push_back(value_of(e, symbols));
  return out;
}

}  // namespace

Tensor random_tensor(const Type& type, const Symbols& symbols, std::uint64_t seed) {
  Tensor t = Tensor::strided(type.dtype, values_of(type.sizes, symbols), values_of(type.strides, symbols));
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const std::uint64_t bits = draw(seed, static_cast<std::uint64_t>(i));
    if (is_float(type.dtype)) {
      const double radius = std::sqrt(-2 * std::log(uniform(bits)));
      t.set(i, radius * std::cos(2 * std::numbers::pi * uniform(draw(~seed, static_cast<std::uint64_t>(i)))));
    } else if (is_bool(type.dtype)) {
      t.set_int(i, static_cast<std::int64_t>(bits >> 63));
    } else {
      const auto magnitude = static_cast<std::int64_t>(bits % 9) + 1;
      t.set_int(i, type.dtype != DType::u8 && (bits >> 63) != 0 ? -magnitude : magnitude);
    }
  }
  return t;
}

std::vector<Tensor> make_inputs(const Graph& g, const std::vector<std::string>& given, Symbols& symbols, std::uint64_t seed,
                                bool fill, const IntRanges* ranges) {
  std::map<std::string, std::string> source;
  std::set<std::string> names;
  std::string all;
  for (ValueId v : g.inputs) {
    names.insert(g.values[v].name);
    all += (all.empty() ? "" : ", ") + g.values[v].name;
  }
  for (const std::string& text : given) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) throw UsageError("--input " + text + ": write NAME=FILE.npy or NAME=random.");
    const std::string name = text.substr(0, equals);
    if (!names.count(name)) throw UsageError("--input " + text + ": the graph has no input " + name + "; it has " + all + ".");
    if (!source.emplace(name, text.substr(equals + 1)).second)
      throw UsageError("--input " + text + ": the input is given twice.");
  }
  std::vector<Tensor> out(g.inputs.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Value& v = g.values[g.inputs[i]];
    const auto it = source.find(v.name);
    if (it == source.end() && !fill)
      throw UsageError("no --input for " + v.name + "; give a .npy file or write --input " + v.name + "=random.");
    if (it == source.end() || it->second == "random") continue;
    out[i] = read_npy(it->second);
    if (out[i].dtype() != v.type.dtype) {
      fail("call.dtype", "{} holds {}, input {} of the graph is {}.", it->second, name(out[i].dtype()), v.name, v.type.str());
    }
    if (out[i].sizes().size() != v.type.sizes.size()) {
      fail("call.shape", "{} has {} dimensions, input {} of the graph is {}.", it->second, out[i].rank(), v.name, v.type.str());
    }
    for (std::size_t d = 0; d < v.type.sizes.size(); ++d) {
      const Expr& e = v.type.sizes[d];
      if (e.is_symbol()) symbols.emplace(e.str(), out[i].sizes()[d]);
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Value& v = g.values[g.inputs[i]];
    if (!out[i].defined() && ranges) {
      out[i] = Tensor::strided(v.type.dtype, values_of(v.type.sizes, symbols), values_of(v.type.strides, symbols));
      const auto range = ranges->find(v.name);
      fill_random(out[i], seed, i, range == ranges->end() ? IntRange{} : range->second);
    }
    if (!out[i].defined()) out[i] = random_tensor(v.type, symbols, seed * 1000003 + i);
    const std::vector<std::int64_t> sizes = values_of(v.type.sizes, symbols), strides = values_of(v.type.strides, symbols);
    if (out[i].sizes() != sizes) fail("call.shape", "input {} is {}, the file given has other sizes.", v.name, v.type.str());
    if (out[i].strides() != strides) {  // kernels are made for the strides of the graph
      Tensor laid_out = Tensor::strided(v.type.dtype, sizes, strides);
      laid_out.copy_bits_from(out[i]);
      out[i] = laid_out;
    }
  }
  return out;
}

void inputs_from_file(const Graph& g, const std::string& path, std::vector<Tensor>& inputs) {
  std::vector<numerics::NamedTensor> file;
  try {
    file = numerics::open_tensors(path);
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
  for (const numerics::NamedTensor& given : file) {
    std::size_t i = 0;
    while (i < inputs.size() && g.values[g.inputs[i]].name != given.name) ++i;
    if (i == inputs.size()) throw UsageError(path + " holds " + given.name + ", which is no input of the kernel.");
    if (!given.problem.empty()) throw UsageError(path + ": " + given.name + " cannot be read: " + given.problem);
    const Tensor t = given.load();
    if (t.dtype() != inputs[i].dtype() || t.sizes() != inputs[i].sizes())
      throw UsageError(path + ": " + given.name + " has another dtype or other sizes than the kernel's input.");
    for (std::size_t d = 0; d < t.sizes().size(); ++d) {
      if (inputs[i].strides()[d] == 0 && t.sizes()[d] > 1)
        throw UsageError(path + ": " + given.name + " is a broadcast input (stride 0), which a file cannot fill.");
    }
    inputs[i].copy_bits_from(t);
  }
}

std::vector<std::int64_t> size_arguments(const Graph& g, const Symbols& symbols) {
  std::vector<std::int64_t> out;
  for (const std::string& name : g.size_params) {
    const auto it = symbols.find(name);
    if (it == symbols.end()) throw UsageError("the size " + name + " has no value; write --size " + name + "=NUMBER.");
    out.push_back(it->second);
  }
  return out;
}

}  // namespace fuselab::cli
