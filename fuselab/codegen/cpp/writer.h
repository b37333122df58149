// Indented lines of source text.
#pragma once
#include <string>

namespace fuselab::codegen::cpp {

class Writer {
 public:
  void line(const std::string& text) { out_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') + text + "\n"; }
  void open(const std::string& text) {
    line(text.empty() ? "{" : text + " {");
    ++depth_;
  }
  void close(const std::string& after = "") {
    --depth_;
    line("}" + after);
  }
  const std::string& text() const { return out_; }

 private:
  std::string out_;
  int depth_ = 0;
};

}  // namespace fuselab::codegen::cpp
