// What the tests of the JIT share: a folder that goes away, a variable that is put back, and small kernels.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fuselab/codegen/source.h"
#include "fuselab/core/hash.h"
#include "fuselab/core/warn.h"

namespace fuselab::jit::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fuselab-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Sets an environment variable (nullptr: unsets it) until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old, had_ = true;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

/// Collects the warnings of a scope.
class Warnings {
 public:
  Warnings() {
    before_ = set_warning_handler([this](const std::string& code, const std::string& message) {
      codes.push_back(code);
      messages.push_back(message);
    });
  }
  ~Warnings() { set_warning_handler(before_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::vector<std::string> codes, messages;

 private:
  WarningHandler before_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void write_file(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// z[16 i + l] = f(x[16 i + l], y[16 i + l]), `body` being the C++ of f on 16-lane vectors x and y.
inline codegen::Source lane_kernel(const std::string& name, const std::string& body, const std::string& before = "") {
  codegen::Source s;
  s.name = name;
  s.tiling_def =
      "typedef long long i64; typedef float f32;\n"
      "typedef f32 f32x16 __attribute__((ext_vector_type(16)));\n"
      "typedef int i32x16 __attribute__((ext_vector_type(16)));\n"
      "typedef f32 f32x16u __attribute__((ext_vector_type(16), aligned(4)));\n" +
      before + "\nstruct " + name +
      "_tiling { i64 phases, units[2], grain[2], scratch, shared, n; };\n"
      "extern \"C\" const i64 " +
      name + "_tiling_bytes = sizeof(" + name + "_tiling);\n";
  s.host_impl = "extern \"C\" void " + name + "_tile(const i64* sizes, i64, void* out) {\n  " + name + "_tiling* t = (" + name +
                "_tiling*)out;\n  *t = {1, {sizes[0] / 16, 0}, {1, 1}, 0, 0, sizes[0]};\n}\n";
  s.device_impl =
      "extern \"C\" i64 " + name +
      "_run(void* const* bufs, const void*, i64, i64 begin, i64 end, char*, char*) {\n"
      "  for (i64 i = begin; i < end; ++i) {\n"
      "    f32x16 x = *(const f32x16u*)((const f32*)bufs[0] + 16 * i), y = *(const f32x16u*)((const f32*)bufs[1] + 16 * i);\n"
      "    *(f32x16u*)((f32*)bufs[2] + 16 * i) = (" +
      body + ");\n  }\n  return 0;\n}\n";
  s.sizes = {"n"};
  s.hash = hash_hex(s.text());
  return s;
}

}  // namespace fuselab::jit::testing
