// Compiled graphs from hand-written kernels and plans: what the runtime does is tested apart from fusing and code generation.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fuselab/core/error.h"
#include "fuselab/core/hash.h"
#include "fuselab/core/threads.h"
#include "fuselab/runtime/compiled.h"
#include "fuselab/runtime/pool.h"

namespace fuselab::runtime {
namespace {

using Kind = fuse::Step::Kind;

Type f32(const std::vector<Expr>& sizes) { return {DType::f32, sizes, contiguous_strides(sizes)}; }

/// out[i] = body over a[i], b[i] and i; every buffer holds n f32 elements. 64 elements a unit. A non-zero `bad` is the status.
codegen::Generated kernel(const std::string& name, const std::string& size, int inputs, const std::string& body, int phases = 1) {
  codegen::Generated g;
  codegen::Source& s = g.source;
  s.name = name;
  s.tiling_def = "typedef long long i64; typedef float f32;\nstruct " + name +
                 "_tiling { i64 phases, units[2], grain[2], scratch, shared, n; };\nextern \"C\" const i64 " + name +
                 "_tiling_bytes = sizeof(" + name + "_tiling);\n";
  s.host_impl = "extern \"C\" void " + name +
                "_tile(const i64* sizes, i64 threads, void* out) {\n  i64 n = sizes[0], u = (n + 63) / 64;\n  *(" + name +
                "_tiling*)out = {" + std::to_string(phases) + ", {u, u}, {1, 1}, 256, 8 * n, n};\n}\n";
  s.device_impl = "extern \"C\" i64 " + name +
                  "_run(void* const* bufs, const void* t, i64 phase, i64 begin, i64 end, char* scratch, char* shared) {\n"
                  "  i64 n = ((const " +
                  name +
                  "_tiling*)t)->n, bad = 0;\n"
                  "  if (end * 64 < n) n = end * 64;\n"
                  "  for (i64 i = begin * 64; i < n; ++i) {\n" +
                  (inputs > 0 ? "    f32 a = ((const f32*)bufs[0])[i];\n" : "") +
                  (inputs > 1 ? "    f32 b = ((const f32*)bufs[1])[i];\n" : "") + "    f32* out = (f32*)bufs[" +
                  std::to_string(inputs) + "] + i;\n    " + body + "\n  }\n  return bad;\n}\n";
  s.sizes = {size};
  s.hash = hash_hex(s.text());
  return g;
}

/// A graph and plan built step by step, without the op table.
struct Maker {
  Graph g;
  fuse::Plan plan;
  std::vector<codegen::Generated> kernels;

  ValueId input(const std::string& name, Type t) { return g.add_input(name, std::move(t)); }
  Node& node(const std::string& target, const std::vector<Operand>& args, const std::vector<Type>& types,
             const std::vector<std::string>& names) {
    Node n;
    n.target = target;
    n.args = args;
    return g.add_node(std::move(n), types, names);
  }
  ValueId kernel_step(const std::string& name, const std::vector<ValueId>& in, Type out, codegen::Generated text) {
    std::vector<Operand> args;
    for (const ValueId v : in) args.emplace_back(v);
    const Node& n = node("test." + name, args, {out}, {name});
    fuse::Step s;
    s.kind = Kind::kernel;
    s.name = text.source.name;
    s.fragment.name = s.name;
    std::vector<Operand> inner;
    for (const ValueId v : in) inner.emplace_back(s.fragment.add_input("x" + std::to_string(inner.size()), g.values[v].type));
    Node copy;
    copy.target = "test." + name;
    copy.args = inner;
    s.fragment.outputs = s.fragment.add_node(std::move(copy), {out}, {"y"}).results;
    s.inputs = in;
    s.outputs = n.results;
    s.nodes = {n.id};
    plan.steps.push_back(std::move(s));
    kernels.push_back(std::move(text));
    return n.results[0];
  }
  std::vector<ValueId> extern_step(const std::string& name, const std::vector<Operand>& args, const std::vector<Type>& types,
                                   const std::vector<std::string>& names, Attrs attrs) {
    Node& n = node(name, args, types, names);
    n.attrs = std::move(attrs);
    fuse::Step s;
    s.kind = Kind::extern_call;
    s.nodes = {n.id};
    plan.steps.push_back(std::move(s));
    return n.results;
  }
  CompiledGraph make(std::vector<ValueId> outputs, int threads = 1) {
    g.outputs = std::move(outputs);
    Options options;
    options.threads = threads;
    return CompiledGraph(g, plan, kernels, options);
  }
};

std::vector<double> ramp(int n, double from = 0) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(from + i);
  return out;
}

TEST(RuntimeCall, AChainOfKernelsReusesItsWorkSpace) {
  Maker m;
  const Type t = f32({1000});
  ValueId v = m.input("x", t);
  for (int i = 0; i < 6; ++i)
    v = m.kernel_step("s" + std::to_string(i), {v}, t,
                      kernel("k" + std::to_string(i), "1000", 1, "*out = a + " + std::to_string(1 << i) + ";"));
  const CompiledGraph g = m.make({v});
  const auto out = g({Tensor::of(DType::f32, {1000}, ramp(1000))});
  EXPECT_EQ(out.at(0).doubles(), ramp(1000, 63));
  // Five intermediates of 4032 bytes: never more than two live at once. (The rest is the kernels' own shared and scratch memory.)
  std::int64_t most = 0;
  for (const Slot& s : g.program().slots)
    if (s.home == Home::arena) ++most;
  EXPECT_EQ(most, 5);
}

TEST(RuntimeCall, ManyThreadsGiveTheSameAndUseTheirOwnScratch) {
  // The kernel writes the sum through its scratch memory: threads sharing one would disturb each other.
  const std::string body =
      "f32* mine = (f32*)scratch; for (int k = 0; k < 64; ++k) mine[k] = a; f32 s = 0; for (int k = 0; k < 64; ++k) s += "
      "mine[k]; *out = s + b;";
  for (const int threads : {1, 2, 4}) {
    Maker m;
    const Type t = f32({100'000});
    const ValueId x = m.input("x", t), y = m.input("y", t);
    const CompiledGraph g = m.make({m.kernel_step("r", {x, y}, t, kernel("k_scratch", "100000", 2, body))}, threads);
    const auto out = g({Tensor::of(DType::f32, {100'000}, ramp(100'000)), Tensor::of(DType::f32, {100'000}, ramp(100'000, 1))});
    for (const int i : {0, 1, 63, 64, 99'999}) EXPECT_EQ(out[0].get(i), 64.0 * i + i + 1) << i;
  }
}

TEST(RuntimeCall, PhasesRunOneAfterAnotherAndShareMemory) {
  // Phase 0 puts a into shared memory; phase 1 reads it from the other end, which another unit wrote.
  const std::string body =
      "f32* all = (f32*)shared; if (phase == 0) all[i] = a; else *out = all[((const k_phase_tiling*)t)->n - 1 - i];";
  Maker m;
  const Type t = f32({10'000});
  const ValueId x = m.input("x", t);
  const CompiledGraph g = m.make({m.kernel_step("r", {x}, t, kernel("k_phase", "10000", 1, body, 2))}, 2);
  const auto out = g({Tensor::of(DType::f32, {10'000}, ramp(10'000))});
  EXPECT_EQ(out[0].get(0), 9999);
  EXPECT_EQ(out[0].get(9999), 0);
}

TEST(RuntimeCall, SymbolicSizesAreBoundPerCallAndRemembered) {
  Maker m;
  m.g.size_params = {"B"};
  const Expr b = Expr::symbol("B");
  const Type t = f32({b, 4});
  const ValueId x = m.input("x", t);
  const ValueId one = m.kernel_step("one", {x}, t, kernel("k_sym1", "4*B", 1, "*out = a + 1;"));
  const CompiledGraph g = m.make({m.kernel_step("two", {one}, t, kernel("k_sym2", "4*B", 1, "*out = a * 2;"))});
  for (int round = 0; round < 3; ++round)
    for (const std::int64_t n : {0, 1, 7, 1000}) {
      const auto out = g({Tensor::of(DType::f32, {n, 4}, ramp(static_cast<int>(4 * n)))}, {n});
      ASSERT_EQ(out[0].sizes(), (std::vector<std::int64_t>{n, 4}));
      for (std::int64_t i = 0; i < 4 * n; ++i) ASSERT_EQ(out[0].get(i), 2.0 * (i + 1));
    }
  EXPECT_EQ(g.bindings(), 4u);
}

TEST(RuntimeCall, WrongInputsAreErrorsWithTheirName) {
  Maker m;
  const Type t = f32({2, 3});
  const ValueId x = m.input("weights", t);
  const CompiledGraph g = m.make({m.kernel_step("r", {x}, t, kernel("k_err", "6", 1, "*out = a;"))});
  const auto code = [&](const std::vector<Tensor>& in) -> std::string {
    try {
      g(in);
      return "no error";
    } catch (const Error& e) {
      if (e.code() != "call.count") {
        EXPECT_NE(std::string(e.what()).find("weights"), std::string::npos) << e.what();
      }
      return e.code();
    }
  };
  EXPECT_EQ(code({}), "call.count");
  EXPECT_EQ(code({Tensor(DType::f64, {2, 3})}), "call.dtype");
  EXPECT_EQ(code({Tensor(DType::f32, {3, 2})}), "call.shape");
  EXPECT_EQ(code({Tensor(DType::f32, {6})}), "call.shape");
  EXPECT_EQ(code({Tensor(DType::f32, {2, 3})}), "no error");
}

TEST(RuntimeCall, AnInputOfAnotherLayoutIsMovedNotMisread) {
  Maker m;
  const Type t = f32({2, 3});
  const ValueId x = m.input("x", t);
  const CompiledGraph g = m.make({m.kernel_step("r", {x}, t, kernel("k_layout", "6", 1, "*out = a;"))});
  Tensor columns = Tensor::strided(DType::f32, {2, 3}, {1, 2});
  for (int i = 0; i < 6; ++i) columns.set(i, i);
  EXPECT_EQ(g({columns})[0].doubles(), ramp(6));
  float one = 5;  // all six elements in one place
  EXPECT_EQ(g({Tensor::view_of(DType::f32, {2, 3}, {0, 0}, &one)})[0].doubles(), std::vector<double>(6, 5));
}

TEST(RuntimeCall, AStatusBecomesAnErrorAlsoFromAThread) {
  for (const int threads : {1, 2}) {
    Maker m;
    const Type t = f32({10'000});
    const ValueId x = m.input("x", t);
    const ValueId r =
        m.kernel_step("r", {x}, t, kernel("k_status", "10000", 1, "if (a == 7777) bad = 1; if (a == -1) bad = 2; *out = a;"));
    const CompiledGraph g = m.make({r}, threads);
    EXPECT_NO_THROW(g({Tensor::of(DType::f32, {10'000}, ramp(10'000, 8000))}));
    try {
      g({Tensor::of(DType::f32, {10'000}, ramp(10'000))});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "call.division_by_zero");
      EXPECT_NE(std::string(e.what()).find("ZeroDivisionError"), std::string::npos);
    }
    try {
      g({Tensor::of(DType::f32, {10'000}, ramp(10'000, -5))});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "call.division_by_zero");  // both happen, in different threads: always the same one is told
    }
  }
}

TEST(RuntimeCall, EmptyTensorsTouchNoMemory) {
  Maker m;
  const Type t = f32({0, 5});
  const ValueId x = m.input("x", t);
  const CompiledGraph g = m.make({m.kernel_step("r", {x}, t, kernel("k_empty", "1", 1, "*out = a;"))});  // would crash if it ran
  const auto out = g({Tensor::view_of(DType::f32, {0, 5}, {5, 1}, nullptr)});
  EXPECT_EQ(out[0].sizes(), (std::vector<std::int64_t>{0, 5}));
}

TEST(RuntimeCall, AnInputMayBeAResultAndAResultMayRepeat) {
  Maker m;
  const Type t = f32({4});
  const ValueId x = m.input("x", t);
  const ValueId r = m.kernel_step("r", {x}, t, kernel("k_same", "4", 1, "*out = -a;"));
  const CompiledGraph g = m.make({r, x, r});
  const Tensor in = Tensor::of(DType::f32, {4}, ramp(4));
  const auto out = g({in});
  EXPECT_EQ(out[1].data(), in.data());
  EXPECT_EQ(out[0].data(), out[2].data());
  EXPECT_EQ(out[0].get(3), -3);
}

/// Runs extern calls on core tensors: doubles its first argument, in the layout it is told.
class DoublingHost final : public Host {
 public:
  std::vector<std::int64_t> last_sizes;
  bool column_major = false;
  int calls = 0;
  void call_extern(Call& call, int step) override {
    ++calls;
    const ProgramStep& s = call.graph.program().steps[step];
    last_sizes = call.binding->call_sizes[step];
    const int in = s.args[0].slot, out = s.slots[0];
    const SlotNumbers& n = call.binding->slots[out];
    StorageRef block = allocate(static_cast<std::size_t>(n.bytes));
    auto* to = static_cast<float*>(block->data);
    const auto* from = reinterpret_cast<const float*>(call.live[in].data);
    const std::int64_t rows = n.sizes[0], columns = n.sizes[1];
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) to[column_major ? j * rows + i : i * columns + j] = 2 * from[i * columns + j];
    call.live[out].data = reinterpret_cast<char*>(to);
    call.live[out].storage = block.release();
    const std::int64_t strides[] = {1, rows};
    if (column_major) call.relayout(out, strides);
  }
};

TEST(RuntimeCall, ExternCallsGetSizesAndTheirResultsAreBroughtIntoLayout) {
  for (const bool column_major : {false, true}) {
    Maker m;
    m.g.size_params = {"B"};
    const Expr b = Expr::symbol("B");
    const Type t = f32({b, 4});
    const ValueId x = m.input("x", t);
    const ValueId one = m.kernel_step("one", {x}, t, kernel("k_ext1", "4*B", 1, "*out = a + 1;"));
    const auto doubled = m.extern_step("test.double", {one}, {t}, {"d"},
                                       {{"call", std::int64_t{0}}, {"sizes", std::vector<Expr>{b * Expr(4), Expr(7)}}});
    const ValueId last = m.kernel_step("last", {doubled[0], one}, t, kernel("k_ext2", "4*B", 2, "*out = a - b;"));
    const CompiledGraph g = m.make({last});
    DoublingHost host;
    host.column_major = column_major;
    const auto out = g(host, {Tensor::of(DType::f32, {3, 4}, ramp(12))}, {3});
    EXPECT_EQ(out[0].doubles(), ramp(12, 1));
    EXPECT_EQ(host.last_sizes, (std::vector<std::int64_t>{12, 7}));
    EXPECT_EQ(host.calls, 1);
  }
}

TEST(RuntimeCall, WithoutAHostAnExternCallIsAnError) {
  Maker m;
  const Type t = f32({2, 2});
  const ValueId x = m.input("x", t);
  const auto r = m.extern_step("aten.mm.default", {x, x}, {t}, {"r"}, {{"call", std::int64_t{0}}});
  const CompiledGraph g = m.make({r[0]});
  try {
    g({Tensor(DType::f32, {2, 2})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "runtime.no_extern");
  }
}

TEST(RuntimeCall, APlanThatReadsTooEarlyIsRefused) {
  Maker m;
  const Type t = f32({4});
  const ValueId x = m.input("x", t);
  const ValueId a = m.kernel_step("a", {x}, t, kernel("k_a", "4", 1, "*out = a;"));
  const ValueId b = m.kernel_step("b", {a}, t, kernel("k_b", "4", 1, "*out = a;"));
  std::swap(m.plan.steps[0], m.plan.steps[1]);
  EXPECT_THROW(m.make({b}), Error);
}

TEST(RuntimeCall, OneGraphServesManyThreads) {
  Maker m;
  m.g.size_params = {"B"};
  const Type t = f32({Expr::symbol("B")});
  const ValueId x = m.input("x", t);
  const ValueId one = m.kernel_step("one", {x}, t, kernel("k_mt1", "B", 1, "*out = a + 1;"));
  const CompiledGraph g = m.make({m.kernel_step("two", {one}, t, kernel("k_mt2", "B", 1, "*out = a * 2;"))});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  threads.emplace_back([&] {  // asks while the others call: a race here is for ThreadSanitizer to see
    for (int round = 0; round < 200; ++round) wrong += !(g.timing().first_run >= 0) || g.bindings() > 50 * 4;
  });
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (int round = 0; round < 200; ++round) {
        const int n = 1 + (round * 7 + k * 13) % 50;
        const auto out = g({Tensor::of(DType::f32, {n}, ramp(n, k))}, {n});
        for (int i = 0; i < n; ++i) wrong += out[0].get(i) != 2.0 * (k + i + 1);
      }
    });
  for (auto& th : threads) th.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fuselab::runtime
