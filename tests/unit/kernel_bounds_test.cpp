// Edited kernel IR: no edit may reach memory outside the tensors of a call. Expected values are worked out by hand; what runs
// does so on memory between pages that nothing may touch.
#include "fuselab/kernel/bounds.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "fuselab/codegen/codegen.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/bind.h"
#include "fuselab/graph/text.h"
#include "fuselab/jit/jit.h"
#include "fuselab/runtime/compiled.h"
#include "jit_support.h"

namespace fuselab {
namespace {

std::string ir_of(const Graph& g) { return codegen::generate(g, "k", {}).kernel_ir; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in\n" << text;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

/// "code: message", or "none".
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code() + ": " + e.what();
  }
  return "none";
}

struct Edit {
  const char *from, *to, *error;  ///< a part of the message; empty: allowed
};

void try_edits(const Graph& g, const std::vector<Edit>& edits) {
  const std::string ir = ir_of(g);
  EXPECT_EQ(error_of([&] { codegen::generate_from_ir(ir, "kernel.ir", &g); }), "none") << ir;
  for (const Edit& e : edits) {
    const std::string edited = replaced(ir, e.from, e.to);
    const std::string error = error_of([&] { codegen::generate_from_ir(edited, "kernel.ir", &g); });
    if (*e.error == 0)
      EXPECT_EQ(error, "none") << edited;
    else
      EXPECT_NE(error.find(e.error), std::string::npos) << error << "\n" << edited;
  }
}

TEST(Bounds, EditsOfAStaticKernel) {
  // x has elements 0 to 511, y 0 to 47.
  const Graph g = parse_graph(
      "graph g(x: f32[8, 64]) {\n  a = abs(x)\n  y = slice(a, dim=0, start=1, end=7, step=2)\n"
      "  z = slice(y, dim=1, start=0, end=16)\n  return z\n}\n");
  const std::string ir = ir_of(g);
  SCOPED_TRACE(ir);
  ASSERT_NE(ir.find("[128]*p0 + p1 + [64]"), std::string::npos);
  try_edits(
      g, {
             {"axis p0: parallel [3]", "axis p0: parallel [4]", "%2 = store z [[128]*p0 + p1] reaches 128 elements past the end"},
             {"axis p0: parallel [3]", "axis p0: parallel [5]", "kernel.ir: %0 = load x [[128]*p0 + p1 + [64]] reaches 80"},
             {"axis p0: parallel [3]", "axis p0: parallel [2]", ""},
             {"axis p0: parallel [3]", "axis p0: parallel [-1]", "which is below zero by 1"},
             {"axis p0: parallel [3]", "axis p0: parallel [B]", "no size of the kernel's fragment is called B"},
             {"[128]*p0", "[200]*p0", ""},                                     // 400 + 15 + 64
             {"[128]*p0", "[220]*p0", "reaches 8 elements past the end"},      // 440 + 15 + 64 = 519
             {"[128]*p0", "[-32]*p0", ""},                                     // -64 + 64
             {"[128]*p0", "[-33]*p0", "reaches 2 elements before the start"},  // -66 + 64
             {"+ [64]]", "+ [240]]", ""},                                      // 256 + 15 + 240
             {"+ [64]]", "+ [241]]", "reaches 1 elements past the end"},
             {"+ [64]]", "+ [-1]]", "reaches 1 elements before the start"},
             {"p0 + p1] %1", "p0 + p1 + [1]] %1", "store z"},
             {"[128]*p0", "[4611686018427387904]*p0", "expr.overflow"},
             {"axis p0: parallel [3]", "axis p0: parallel [3]\n  axis p9: parallel [99999999999999999]", "more points"},
             {"out z", "in z", "kernel."},
         });
}

TEST(Bounds, EditsOfAReduction) {
  const Graph g = parse_graph("graph g(x: f32[4, 100]) {\n  y = sum(x, dims=[1])\n  return y\n}\n");
  try_edits(g, {
                   {"inner [100]", "inner [101]", "load x"},
                   {"inner [100]", "inner [64]", ""},
                   {"inner [100]", "inner [0]", ""},
                   {"inner [100]", "parallel [100]", "the tree holds the parallel axis"},
                   {"(r0)", "(r0 r0)", "must hold the inner axis r0 once"},
                   {"(r0)", "", "kernel."},
                   {"+ r0]", "]", "is the same all along them"},
                   {"reduce sum %0", "reduce sum %1", "kernel."},
               });
}

TEST(Bounds, SymbolicSizesAreCheckedAtEachCall) {
  const Graph g = parse_graph("graph g(x: f32[B, 100]) {\n  y = sum(x, dims=[1])\n  return y\n}\n");
  const std::string ir = ir_of(g);
  const auto run = [&](const std::string& text, std::int64_t size) {
    return error_of([&] {
      codegen::Generated made = codegen::generate_from_ir(text, "kernel.ir", &g);
      made.source.hash = "";
      const runtime::CompiledGraph call(g, runtime::one_kernel_plan(g, "k"), {std::move(made)});
      call(std::vector<Tensor>{Tensor(DType::f32, {size, 100})});
    });
  };
  for (const int size : {0, 1, 7}) EXPECT_EQ(run(ir, size), "none") << ir;
  const std::string fixed = replaced(ir, "parallel [B]", "parallel [7]");
  EXPECT_EQ(run(fixed, 7), "none");
  EXPECT_EQ(run(fixed, 9), "none");
  EXPECT_NE(run(fixed, 6).find("kernel.bounds: kernel.ir: %0 = load x [[100]*p0 + r0] reaches 100 elements past"),
            std::string::npos);
  EXPECT_NE(run(fixed, 0).find("reaches into an empty tensor"), std::string::npos);
  const std::string more = replaced(ir, "parallel [B]", "parallel [B + 1]");
  for (const int size : {0, 1, 7}) EXPECT_EQ(run(more, size).substr(0, 13), "kernel.bounds") << run(more, size);
  const std::string fewer = replaced(ir, "parallel [B]", "parallel [B - 2]");
  EXPECT_NE(run(fewer, 1).find("below zero by 1"), std::string::npos);
  EXPECT_EQ(run(fewer, 2), "none");
  EXPECT_EQ(run(replaced(ir, "[100]*p0", "[B]*p0"), 100), "none");
  EXPECT_EQ(run(replaced(ir, "[100]*p0", "[B]*p0"), 101).substr(0, 13), "kernel.bounds");
}

/// Memory whose last byte, or first one, lies at a page that must not be touched.
class Guarded {
 public:
  Guarded(std::size_t bytes, bool at_end) {
    const std::size_t page = 4096, body = (bytes + page - 1) / page * page;
    size_ = body + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + page + body, page, PROT_NONE);
    data = base_ + page + (at_end ? body - bytes : 0);
    std::memset(data, 0, bytes);
  }
  ~Guarded() { munmap(base_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* data;

 private:
  char* base_;
  std::size_t size_;
};

/// Runs the kernel with every buffer against a forbidden page. A reach outside ends the test program.
void run_guarded(const codegen::Source& source, const Graph& g, const SymbolValues& sizes, bool at_end) {
  jit::Options options;
  options.read_cache = false;
  const jit::Kernel kernel = jit::load(source, jit::Target::host(), options);
  std::vector<std::unique_ptr<Guarded>> memory;
  std::vector<void*> buffers;
  for (const auto& list : {g.inputs, g.outputs}) {
    for (const ValueId v : list) {
      std::int64_t elements = 1;
      for (const Expr& e : g.values[static_cast<std::size_t>(v)].type.sizes) elements *= e.eval(sizes);
      memory.push_back(std::make_unique<Guarded>(
          static_cast<std::size_t>(elements * size_of(g.values[static_cast<std::size_t>(v)].type.dtype)), at_end));
      buffers.push_back(memory.back()->data);
    }
  }
  std::vector<std::int64_t> values;
  for (const std::string& text : source.sizes) values.push_back(Expr::parse(text).eval(sizes));
  std::vector<std::uint64_t> tiling(static_cast<std::size_t>(kernel.tiling_bytes) / 8 + 8);
  kernel.tile(values.data(), 1, tiling.data());
  const auto* head = reinterpret_cast<const codegen::TilingHead*>(tiling.data());
  Guarded scratch(static_cast<std::size_t>(head->scratch_bytes) + 64, false),
      shared(static_cast<std::size_t>(head->shared_bytes) + 64, false);
  for (std::int64_t phase = 0; phase < head->phases; ++phase)
    kernel.run(buffers.data(), tiling.data(), phase, 0, head->units[phase], scratch.data, shared.data);
}

TEST(Bounds, RandomEditsStayInsideGuardedMemory) {
  const jit::testing::TempFolder folder;
  const jit::testing::Variable cache("FUSELAB_CACHE_DIR", folder.path().c_str());
  const struct {
    const char* text;
    SymbolValues sizes;
  } graphs[] = {
      {"graph g(x: f32[3, 40], w: f16[40]) {\n  a = mul(x, w)\n  y = softmax(a, dim=1)\n  return y\n}\n", {}},
      {"graph g(x: f32[B, 20]) {\n  a = exp(x)\n  y = sum(a, dims=[0])\n  return y\n}\n", {{"B", 9}}},
      {"graph g(x: i8[5, B], y: i8[5, B]) {\n  a = permute(x, dims=[1, 0])\n  b = permute(y, dims=[1, 0])\n  c = add(a, b)\n"
       "  return c\n}\n",
       {{"B", 33}}},
  };
  std::mt19937 random(4);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const char* const numbers[] = {"0", "1", "2", "3", "7", "16", "33", "40", "41", "64", "-1", "-8", "B", "B + 1", "B - 1", "2*B"};
  int ran = 0, refused = 0;
  for (int i = 0; i < 700; ++i) {
    const auto& entry = graphs[pick(std::size(graphs))];
    const Graph g = parse_graph(entry.text);
    std::string ir = ir_of(g);
    for (std::size_t edits = 1 + pick(2); edits > 0; --edits) {  // a bracket's number or an axis's name is another
      static const std::regex place(R"(\[[^\[\]]+\](?=\*|\n|\]| \+)|\b[pr][0-9]\b(?=[ \]]))");
      std::vector<std::smatch> found;
      for (std::sregex_iterator it(ir.begin(), ir.end(), place), end; it != end; ++it) found.push_back(*it);
      const std::smatch& m = found[pick(found.size())];
      static const char* const axes[] = {"p0", "p1", "r0", "[2]*p0", "[3]*r0"};
      const std::string to =
          m.str()[0] == '[' ? "[" + std::string(numbers[pick(std::size(numbers))]) + "]" : axes[pick(std::size(axes))];
      ir = std::string(m.prefix()) + to + std::string(m.suffix());
      found.clear();
    }
    try {
      const codegen::Generated made = codegen::generate_from_ir(ir, "kernel.ir", &g);
      kernel::check_bounds(made.bounds, entry.sizes);
      SCOPED_TRACE(ir);
      run_guarded(made.source, g, entry.sizes, pick(2) == 0);
      ++ran;
    } catch (const Error& e) {
      ++refused;
      EXPECT_TRUE(e.code().starts_with("kernel.") || e.code().starts_with("expr.")) << e.code() << ": " << e.what() << "\n" << ir;
    }
  }
  EXPECT_GT(ran, 40);
  EXPECT_GT(refused, 40);
}

}  // namespace
}  // namespace fuselab
