// The text form of kernel IR: one line per buffer, axis and statement. `--e2e` and `fuselab compile` read it back.
//
//   kernel autofused_reduce_sum_1f0c2a {
//     symbols B
//     in x: f16            # f16[B, 4096]
//     out y: f32
//     axis p0: parallel [B]
//     axis r0: inner [4096]
//     tree lanes (r0)      # `tree lanes chunk 1024 (r0)`: blocks of 1024 elements instead of 512
//     %0 = load x [[4096]*p0 + r0]: f16
//     %1 = cast %0: f32
//     %2 = reduce sum %1: f32  # total
//     %3 = store y [p0] %2: f32
//   }
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "fuselab/core/error.h"
#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {
namespace {

std::string scalar_text(const Scalar& v) {
  if (const auto* d = std::get_if<double>(&v)) {
    std::string t = fmt::format("{}", *d);
    return t.find_first_of(".en") == std::string::npos ? t + ".0" : t;
  }
  if (const auto* i = std::get_if<std::int64_t>(&v)) return fmt::format("{}", *i);
  return std::get<bool>(v) ? "true" : "false";
}

std::string stmt_text(const Kernel& k, const Stmt& s) {
  std::string args;
  for (int a : s.args) args += fmt::format("{}%{}", args.empty() ? "" : ", ", a);
  std::string body;
  switch (s.kind) {
    case StmtKind::load:
      body = fmt::format("load {} [{}]", k.buffers[s.buffer].name, s.index.str(k.axes));
      break;
    case StmtKind::store:
      body = fmt::format("store {} [{}] {}", k.buffers[s.buffer].name, s.index.str(k.axes), args);
      break;
    case StmtKind::constant:
      body = "const " + scalar_text(s.value);
      break;
    case StmtKind::size:
      body = "size [" + s.size.str() + "]";
      break;
    case StmtKind::index:
      body = "index [" + s.index.str(k.axes) + "]";
      break;
    case StmtKind::cast:
      body = "cast " + args;
      break;
    case StmtKind::reduce:
      body = "reduce " + s.op + " " + args;
      break;
    case StmtKind::compute:
      body = s.op + " " + args;
      break;
  }
  std::string out = fmt::format("{}: {}", body, name(s.type));
  if (s.user) out += " user";
  if (!s.name.empty()) out += "  # " + s.name;
  return out;
}

/// Reads one line after another; every error names file and line.
class Parser {
 public:
  Parser(const std::string& text, std::string file) : text_(text), file_(std::move(file)) {}

  Kernel run() {
    Kernel k;
    while (next_line()) {
      if (eat("kernel ")) {
        k.name = word();
        expect("{");
      } else if (eat("symbols ")) {
        do k.symbols.push_back(word());
        while (eat(","));
      } else if (eat("in ") || at("out ")) {
        const bool output = eat("out ");
        Buffer b;
        b.output = output;
        b.name = word();
        expect(":");
        b.dtype = dtype();
        b.type = comment_;
        k.buffers.push_back(b);
        k.inputs += !output;
      } else if (eat("axis ")) {
        Axis a;
        a.name = word();
        expect(":");
        a.role = eat("inner") ? Role::inner : Role::parallel;
        if (a.role == Role::parallel) expect("parallel");
        a.extent = Expr::parse(bracketed());
        axes_[a.name] = static_cast<int>(k.axes.size());
        k.axes.push_back(a);
      } else if (eat("tree ")) {
        k.tree.lanes = eat("lanes");
        if (!k.tree.lanes) expect("sequential");
        if (eat("chunk ")) k.tree.block_steps = block_steps(k.tree);
        while (eat("(")) {
          k.tree.groups.emplace_back();
          while (!eat(")")) k.tree.groups.back().push_back(axis());
        }
      } else if (eat("%")) {
        if (word() != std::to_string(k.stmts.size())) error("statements must be numbered in order");
        expect("=");
        k.stmts.push_back(statement(k));
      } else if (!eat("}")) {
        error("expected a buffer, an axis, a tree or a statement");
      }
      skip();
      if (pos_ != line_.size()) error("unexpected text at the end");
    }
    if (k.name.empty()) error("no `kernel NAME {` line");
    verify(k);
    return k;
  }

 private:
  Stmt statement(const Kernel& k) {
    Stmt s;
    const std::string op = word();
    if (op == "load" || op == "store") {
      s.kind = op == "load" ? StmtKind::load : StmtKind::store;
      const std::string b = word();
      for (std::size_t i = 0; i < k.buffers.size(); ++i)
        if (k.buffers[i].name == b && k.buffers[i].output == (op == "store")) s.buffer = static_cast<int>(i);
      if (s.buffer < 0) error("no such buffer: " + b);
      s.index = index(bracketed());
    } else if (op == "const") {
      s.kind = StmtKind::constant;
      s.value = scalar(word());
    } else if (op == "size") {
      s.kind = StmtKind::size;
      s.size = Expr::parse(bracketed());
    } else if (op == "index") {
      s.kind = StmtKind::index;
      s.index = index(bracketed());
    } else if (op == "cast") {
      s.kind = StmtKind::cast;
    } else if (op == "reduce") {
      s.kind = StmtKind::reduce;
      s.op = word();
      static const std::map<std::string, int> kReductions = {{"sum", 0},      {"prod", 0},    {"max", 0},    {"min", 0},
                                                             {"any", 0},      {"all", 0},     {"argmax", 0}, {"argmin", 0},
                                                             {"firstmax", 0}, {"firstmin", 0}};
      if (kReductions.count(s.op) == 0) error("no such reduction: " + s.op);
    } else {
      s.op = op;
    }
    while (eat("%")) {
      const Scalar a = scalar(word());
      const auto* i = std::get_if<std::int64_t>(&a);
      if (i == nullptr || *i < 0 || *i >= static_cast<std::int64_t>(k.stmts.size()))
        error("reads a statement that does not precede it");
      s.args.push_back(static_cast<int>(*i));
      eat(",");
    }
    expect(":");
    s.type = dtype();
    s.user = eat("user");
    s.name = comment_;
    return s;
  }

  Index index(const std::string& text) {
    Index out;
    std::size_t i = 0;
    int depth = 0;
    for (std::size_t j = 0; j <= text.size(); ++j) {
      if (j < text.size() && text[j] == '[') ++depth;
      if (j < text.size() && text[j] == ']') --depth;
      if (j < text.size() && !(depth == 0 && text[j] == '+')) continue;
      term(text.substr(i, j - i), out);
      i = j + 1;
    }
    return out;
  }

  void term(std::string t, Index& out) {
    t.erase(0, t.find_first_not_of(' '));
    t.erase(t.find_last_not_of(' ') + 1);
    if (t.empty()) error("an empty index term");
    if (t[0] != '[') {
      auto it = axes_.find(t);
      if (it == axes_.end()) error("no such axis: " + t);
      out.add(it->second, 1);
      return;
    }
    const std::size_t close = t.rfind(']');
    if (close == std::string::npos) error("a bracket is not closed");
    const Expr e = Expr::parse(t.substr(1, close - 1));
    if (close + 1 == t.size()) {
      out.offset = out.offset + e;
      return;
    }
    auto it = axes_.find(t.substr(close + 2));
    if (it == axes_.end() || t[close + 1] != '*') error("no such axis in " + t);
    out.add(it->second, e);
  }

  int axis() {
    const std::string w = word();
    auto it = axes_.find(w);
    if (it == axes_.end()) error("no such axis: " + w);
    return it->second;
  }

  DType dtype() { return parse_dtype(word()); }

  int block_steps(const Tree& tree) {
    const Scalar given = scalar(word());
    const auto* n = std::get_if<std::int64_t>(&given);
    const int unit = tree.lanes ? kLanes : 1;
    if (n == nullptr || *n < kChains * unit || *n > 65536 * unit || (*n & (*n - 1)) != 0)
      error(fmt::format("a chunk is a power of two from {} to {} elements", kChains * unit, 65536 * unit));
    return static_cast<int>(*n / unit);
  }

  Scalar scalar(const std::string& w) {
    if (w == "true") return true;
    if (w == "false") return false;
    std::int64_t i = 0;
    const auto [end, err] = std::from_chars(w.data(), w.data() + w.size(), i);
    if (err == std::errc() && end == w.data() + w.size()) return i;
    double d = 0;
    const auto [dend, derr] = std::from_chars(w.data(), w.data() + w.size(), d);
    if (derr != std::errc() || dend != w.data() + w.size()) error("not a number: " + w);
    return d;
  }

  bool next_line() {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      line_ = text_.substr(at_, end - at_);
      at_ = end + 1;
      ++number_;
      pos_ = 0;
      comment_.clear();
      const std::size_t hash = line_.find('#');
      if (hash != std::string::npos) {
        comment_ = line_.substr(std::min(line_.size(), hash + 2));
        line_.resize(hash);
      }
      line_.erase(line_.find_last_not_of(" \t\r") + 1);
      skip();
      if (pos_ < line_.size()) return true;
    }
    return false;
  }

  void skip() {
    while (pos_ < line_.size() && line_[pos_] == ' ') ++pos_;
  }
  bool at(std::string_view t) {
    skip();
    return line_.compare(pos_, t.size(), t) == 0;
  }
  bool eat(std::string_view t) {
    if (!at(t)) return false;
    pos_ += t.size();
    return true;
  }
  void expect(std::string_view t) {
    if (!eat(t)) error(fmt::format("expected '{}'", t));
  }
  std::string word() {
    skip();
    const std::size_t start = pos_;
    while (pos_ < line_.size() && std::string_view(" ,:()%=[]{}").find(line_[pos_]) == std::string_view::npos) ++pos_;
    if (pos_ == start) error("expected a word");
    return line_.substr(start, pos_ - start);
  }
  std::string bracketed() {
    expect("[");
    const std::size_t start = pos_;
    int depth = 1;
    while (pos_ < line_.size() && depth > 0) {
      depth += line_[pos_] == '[';
      depth -= line_[pos_] == ']';
      ++pos_;
    }
    if (depth != 0) error("a bracket is not closed");
    return line_.substr(start, pos_ - 1 - start);
  }
  [[noreturn]] void error(const std::string& why) const {
    fail("kernel.syntax", "{}:{}: {} in `{}`", file_, number_, why, line_);
  }

  const std::string& text_;
  std::string file_, line_, comment_;
  std::size_t at_ = 0, pos_ = 0;
  int number_ = 0;
  std::map<std::string, int> axes_;
};

}  // namespace

std::string print_kernel(const Kernel& k) {
  std::string out = "kernel " + k.name + " {\n";
  if (!k.symbols.empty()) out += fmt::format("  symbols {}\n", fmt::join(k.symbols, ", "));
  for (const Buffer& b : k.buffers)
    out += fmt::format("  {} {}: {}  # {}\n", b.output ? "out" : "in", b.name, name(b.dtype), b.type);
  for (const Axis& a : k.axes)
    out += fmt::format("  axis {}: {} [{}]\n", a.name, a.role == Role::inner ? "inner" : "parallel", a.extent.str());
  if (!k.tree.groups.empty()) {
    out += k.tree.lanes ? "  tree lanes" : "  tree sequential";
    if (k.tree.block_steps != kBlockSteps) out += fmt::format(" chunk {}", k.tree.chunk());
    for (const auto& g : k.tree.groups) {
      std::string names;
      for (int a : g) names += (names.empty() ? "" : " ") + k.axes[a].name;
      out += " (" + names + ")";
    }
    out += "\n";
  }
  for (std::size_t i = 0; i < k.stmts.size(); ++i) out += fmt::format("  %{} = {}\n", i, stmt_text(k, k.stmts[i]));
  return out + "}\n";
}

Kernel parse_kernel(const std::string& text, const std::string& file) { return Parser(text, file).run(); }

}  // namespace fuselab::kernel
