// Prints one C++ source with every vector-math text and, for each function, a loop `run_<name>_<type>(in0, in1, out, n)` over
// arrays (n a multiple of 16): what vecmath_exhaustive measures. Names on the command line restrict it to those.
#include <cstdio>
#include <cstring>

#include "fuselab/codegen/cpp/vecmath/vecmath.h"

using namespace fuselab;
using namespace fuselab::codegen;

int main(int argc, char** argv) {
  std::vector<std::pair<std::string, DType>> wanted;
  std::string loops;
  for (const vecmath::Function* f : vecmath::all()) {
    bool chosen = argc == 1;
    for (int i = 1; i < argc; ++i) chosen = chosen || f->name == argv[i];
    if (!chosen) continue;
    wanted.emplace_back(f->name, f->type);
    const std::string suffix(name(f->type)), type = f->type == DType::f64 ? "f64" : "f32";
    const std::string call = f->args == 1 ? "(x)" : "(x, *(const V*)(b + i))";
    loops += "extern \"C\" void run_" + std::string(f->name) + "_" + suffix + "(const " + type + "* a, const " + type + "* b, " +
             type + "* y, long n) {\n  typedef " + type +
             "x16 V __attribute__((aligned(4)));\n  for (long i = 0; i < n; i += 16) {\n    " + type +
             "x16 x = *(const V*)(a + i);\n    *(V*)(y + i) = " + std::string(f->symbol) + call + ";\n  }\n}\n";
  }
  std::fputs(std::string(vecmath::prelude()).c_str(), stdout);
  std::fputs(vecmath::texts(wanted).c_str(), stdout);
  std::fputs(loops.c_str(), stdout);
}
