// Compiling and loading: results, errors, both instruction sets, threads, fork.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "fuselab/core/error.h"
#include "fuselab/jit/jit.h"
#include "jit_support.h"

namespace fuselab::jit {
namespace {

using testing::lane_kernel;
using testing::TempFolder;
using testing::Variable;

/// A cache folder of its own for each test.
class Jit : public ::testing::Test {
 protected:
  TempFolder folder_;
  Variable cache_{"FUSELAB_CACHE_DIR", folder_.path().c_str()};
  Variable isa_{"FUSELAB_ISA", nullptr};
};

std::vector<float> run(const Kernel& kernel, const std::vector<float>& x, const std::vector<float>& y) {
  std::vector<float> z(x.size(), -1.0f);
  std::vector<std::int64_t> tiling((kernel.tiling_bytes + 7) / 8);
  const std::int64_t sizes[] = {static_cast<std::int64_t>(x.size())};
  kernel.tile(sizes, 1, tiling.data());
  const auto* head = reinterpret_cast<const codegen::TilingHead*>(tiling.data());
  EXPECT_EQ(head->phases, 1);
  EXPECT_EQ(head->units[0], static_cast<std::int64_t>(x.size() / 16));
  void* bufs[] = {const_cast<float*>(x.data()), const_cast<float*>(y.data()), z.data()};
  EXPECT_EQ(kernel.run(bufs, tiling.data(), 0, 0, head->units[0], nullptr, nullptr), codegen::kOk);
  return z;
}

std::vector<float> ramp(float scale) {
  std::vector<float> x(64);
  for (int i = 0; i < 64; ++i) x[i] = scale * static_cast<float>(i - 31);
  return x;
}

std::vector<Target> targets() {
  std::vector<Target> all = {{"generic"}};
  const std::string best = Target::host().isa;
  if (best != "generic") all.push_back({"avx2"});
  if (best == "avx512") all.push_back({"avx512"});
  return all;
}

TEST_F(Jit, AddOnEveryTarget) {
  const auto x = ramp(0.5f), y = ramp(-3.0f);
  for (const Target& target : targets()) {
    const Kernel k = load(lane_kernel("k_add", "x + y"), target);
    EXPECT_FALSE(k.from_cache);
    EXPECT_GT(k.compile_ms, 0);
    const auto z = run(k, x, y);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(z[i], x[i] + y[i]) << target.isa;
  }
}

// a*b+c is two roundings unless the text says fma; with 1+2^-12 squared minus 1 the two differ.
TEST_F(Jit, NoContraction) {
  const float a = 1.0f + std::ldexp(1.0f, -12);
  const std::vector<float> x(16, a), y(16, -1.0f);
  for (const Target& target : targets()) {
    EXPECT_EQ(run(load(lane_kernel("k_muladd", "x * x + y"), target), x, y)[0], std::ldexp(1.0f, -11)) << target.isa;
    EXPECT_EQ(run(load(lane_kernel("k_fma", "__builtin_elementwise_fma(x, x, y)"), target), x, y)[0],
              std::ldexp(1.0f, -11) + std::ldexp(1.0f, -24))
        << target.isa;
  }
}

TEST_F(Jit, IeeeSpecialValues) {
  std::vector<float> x(16, 0.0f), y(16, 0.0f);
  x[0] = INFINITY, y[0] = -INFINITY;
  x[1] = -0.0f, y[1] = 0.0f;
  x[2] = 1e-45f, y[2] = 0.0f;  // denormals are not flushed
  x[3] = NAN;
  for (const Target& target : targets()) {
    const auto z = run(load(lane_kernel("k_special", "x + y"), target), x, y);
    EXPECT_TRUE(std::isnan(z[0]));
    EXPECT_FALSE(std::signbit(z[1]));
    EXPECT_EQ(z[2], 1e-45f);
    EXPECT_TRUE(std::isnan(z[3]));
    EXPECT_TRUE(std::signbit(run(load(lane_kernel("k_neg", "-x"), target), x, y)[4])) << "-(+0) is -0";
  }
}

TEST_F(Jit, IntegersWrap) {
  const std::vector<float> x(16, 0.0f), y(16, 0.0f);
  const auto source = lane_kernel(
      "k_wrap", "__builtin_convertvector(((i32x16)(2147483647) + __builtin_convertvector(x, i32x16) + 1) >> 31, f32x16)");
  for (const Target& target : targets()) EXPECT_EQ(run(load(source, target), x, y)[0], -1.0f);
}

TEST_F(Jit, OutsideFunctionsLink) {
  const std::vector<float> x(16, 7.5f), y(16, 2.0f);
  const auto source =
      lane_kernel("k_fmod", "f(x, y)",
                  "extern \"C\" float fmodf(float, float);\n"
                  "static f32x16 f(f32x16 x, f32x16 y) { for (int i = 0; i < 16; ++i) x[i] = fmodf(x[i], y[i]); return x; }");
  EXPECT_EQ(run(load(source, Target::host()), x, y)[3], 1.5f);
}

TEST_F(Jit, UnknownFunctionIsALinkError) {
  const auto source = lane_kernel("k_missing", "f(x)", "extern \"C\" f32x16 f(f32x16);");
  try {
    load(source, Target::host());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "jit.link");
    EXPECT_NE(std::string(e.what()).find("k_missing"), std::string::npos) << e.what();
  }
}

// A kernel may not reach what happens to be loaded in the process.
TEST_F(Jit, ProcessSymbolsAreOutOfReach) {
  EXPECT_THROW(
      load(lane_kernel("k_exit", "f(x)", "extern \"C\" void exit(int); static f32x16 f(f32x16 x) { exit(3); return x; }"),
           Target::host()),
      Error);
}

TEST_F(Jit, CompileErrorSaysWhere) {
  for (const std::string& body : {std::string("x +"), std::string("nothing"), std::string("x + (i64*)0")}) {
    try {
      load(lane_kernel("k_bad", body), Target::host());
      FAIL() << body;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "jit.compile");
      const std::string what = e.what();
      EXPECT_NE(what.find("k_bad.cpp:"), std::string::npos) << what;
      EXPECT_NE(what.find("error:"), std::string::npos) << what;
      EXPECT_NE(what.find('^'), std::string::npos) << what;
    }
  }
}

TEST_F(Jit, BrokenTextsAreErrors) {
  const std::string deep(5000, '(');
  for (const std::string& text :
       {std::string("\xff\xfe\x00garbage"), std::string("#include <vector>"), std::string("#include \"/etc/passwd\""),
        "int x = " + deep + "1;", std::string("template<int N> struct F { static const int v = F<N-1>::v; }; int x = F<1>::v;"),
        std::string("#error no"), std::string("int f() { asm volatile(\"no_such_instruction\"); return 0; }")}) {
    EXPECT_THROW(compile_object(text, "t.cpp", Target::host()), Error) << text.substr(0, 60);
  }
  EXPECT_FALSE(compile_object("", "empty.cpp", Target::host()).empty());
}

TEST_F(Jit, ObjectBytesAreTheSameEveryTime) {
  const auto source = lane_kernel("k_same", "__builtin_elementwise_sqrt(x) * y + x");
  for (const Target& target : targets()) {
    const auto once = compile_object(source.text(), "k.cpp", target);
    EXPECT_EQ(once, compile_object(source.text(), "k.cpp", target));
    std::vector<char> other;
    std::thread([&] { other = compile_object(source.text(), "k.cpp", target); }).join();
    EXPECT_EQ(once, other);
  }
}

TEST_F(Jit, LoadAllKeepsOrderAndCompilesEqualsOnce) {
  std::vector<codegen::Source> sources;
  for (int i = 0; i < 12; ++i)
    sources.push_back(lane_kernel("k_all" + std::to_string(i % 4), "x * " + std::to_string(i % 4) + ".0f"));
  const auto kernels = load_all(sources, Target::host(), 3);
  ASSERT_EQ(kernels.size(), 12u);
  const std::vector<float> x(16, 2.0f);
  int compiled = 0;
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(run(kernels[i], x, x)[0], 2.0f * static_cast<float>(i % 4));
    compiled += kernels[i].compile_ms > 0 ? 1 : 0;
  }
  EXPECT_EQ(compiled, 4);
}

TEST_F(Jit, LoadAllThrowsTheFirstError) {
  const std::vector<codegen::Source> sources = {lane_kernel("k_ok", "x"), lane_kernel("k_first", "first"),
                                                lane_kernel("k_second", "second")};
  for (int threads : {1, 3}) {
    try {
      load_all(sources, Target::host(), threads);
      FAIL();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("k_first.cpp"), std::string::npos);
    }
  }
  EXPECT_TRUE(load_all({}, Target::host(), 2).empty());
}

TEST_F(Jit, IsaFromTheEnvironment) {
  {
    Variable isa("FUSELAB_ISA", "generic");
    EXPECT_EQ(Target::host().isa, "generic");
  }
  Variable isa("FUSELAB_ISA", "sse9");
  try {
    Target::host();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "jit.bad_isa");
  }
}

TEST_F(Jit, SmallStack) {
  const auto body = [](void*) -> void* {
    const bool ok = !compile_object(lane_kernel("k_stack", "x * y").text(), "k.cpp", Target::host()).empty();
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(ok));
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  void* ok = nullptr;
  pthread_join(thread, &ok);
  EXPECT_NE(ok, nullptr);
}

#ifndef FUSELAB_TSAN
TEST_F(Jit, WorksAfterFork) {
  load(lane_kernel("k_parent", "x - y"), Target::host());
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const std::vector<float> x(16, 3.0f);
    const auto kernels = load_all({lane_kernel("k_parent", "x - y"), lane_kernel("k_child", "x + y")}, Target::host(), 2);
    _exit(run(kernels[1], x, x)[0] == 6.0f && run(kernels[0], x, x)[0] == 0.0f ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

}  // namespace
}  // namespace fuselab::jit
