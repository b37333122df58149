// A layered drawing: each box stands one row below the lowest box it reads, boxes in a row are ordered by where their
// arguments stand. Simple and readable; no crossings are counted.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fuselab/graph/dot.h"

namespace fuselab {
namespace {

constexpr int kMaxNodes = 2000;
constexpr double kCharacter = 6.7, kLine = 14, kGapX = 24, kGapY = 44, kMargin = 20;

struct Box {
  std::vector<std::string> lines;
  std::vector<int> reads;  ///< indices of boxes
  int row = 0;
  double x = 0, y = 0, width = 0, height = 0;
  double wish = 0;  ///< where its arguments would like it to stand
  std::string fill = "#ffffff", dash;
};

std::string xml(const std::string& text) {
  std::string s;
  for (const char c : text) {
    switch (c) {
      case '&':
        s += "&amp;";
        break;
      case '<':
        s += "&lt;";
        break;
      case '>':
        s += "&gt;";
        break;
      case '"':
        s += "&quot;";
        break;
      default:
        s += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return s;
}

std::string shortened(std::string text) {
  if (text.size() <= 60) return text;
  text.resize(57);
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();  // no half characters
  return text + "...";
}

/// Hues a golden-angle step apart, so that neighbours differ however many blocks there are.
std::string block_colour(std::size_t b) { return fmt::format("hsl({}, 65%, 86%)", (b * 137 + 205) % 360); }

std::vector<Box> boxes_of(const Graph& g, const Blocks& blocks) {
  std::vector<Box> boxes;
  std::map<ValueId, int> box_of;  // value -> box that makes it
  const auto reads = [&](Box& b, ValueId v) {
    if (const auto it = box_of.find(v); it != box_of.end()) {
      b.reads.push_back(it->second);
      b.row = std::max(b.row, boxes[it->second].row + 1);
    }
  };
  for (const ValueId i : g.inputs) {
    Box b;
    b.lines = {shortened(g.values[i].name + ": " + g.values[i].type.str())};
    b.fill = "#f2f2f2";
    box_of[i] = static_cast<int>(boxes.size());
    boxes.push_back(std::move(b));
  }
  for (const Node& n : g.nodes) {
    if (n.id >= kMaxNodes) break;
    Box b;
    b.lines = {n.op ? n.op->name : n.target};
    for (const ValueId r : n.results) b.lines.push_back(shortened(g.values[r].name + ": " + g.values[r].type.str()));
    for (const Operand& a : n.args) {
      if (const auto* v = std::get_if<ValueId>(&a)) reads(b, *v);
    }
    const int block = static_cast<std::size_t>(n.id) < blocks.of_node.size() ? blocks.of_node[n.id] : -1;
    if (block >= 0) b.fill = block_colour(static_cast<std::size_t>(block));
    if (n.op == nullptr) b.dash = " stroke-dasharray=\"4 3\"";
    for (const ValueId r : n.results) box_of[r] = static_cast<int>(boxes.size());
    boxes.push_back(std::move(b));
  }
  for (const ValueId o : g.outputs) {
    Box b;
    b.lines = {shortened("return " + g.values[o].name)};
    b.fill = "#f2f2f2";
    reads(b, o);
    boxes.push_back(std::move(b));
  }
  // An input stands right above its first reader, not all of them in the top row.
  std::vector<int> lowest(g.inputs.size(), -1);
  for (const Box& b : boxes) {
    for (const int r : b.reads) {
      if (r < static_cast<int>(lowest.size())) lowest[r] = lowest[r] < 0 ? b.row - 1 : std::min(lowest[r], b.row - 1);
    }
  }
  for (std::size_t i = 0; i < lowest.size(); ++i) boxes[i].row = std::max(lowest[i], 0);
  return boxes;
}

/// Gives every box its place; returns the picture's size.
std::pair<double, double> place(std::vector<Box>& boxes) {
  std::vector<std::vector<Box*>> rows;
  for (Box& b : boxes) {
    std::size_t longest = 0;
    for (const auto& l : b.lines) longest = std::max(longest, l.size());
    b.width = kCharacter * static_cast<double>(longest) + 16;
    b.height = kLine * static_cast<double>(b.lines.size()) + 10;
    if (rows.size() <= static_cast<std::size_t>(b.row)) rows.resize(static_cast<std::size_t>(b.row) + 1);
    rows[static_cast<std::size_t>(b.row)].push_back(&b);
  }
  double y = kMargin, widest = 0;
  for (auto& row : rows) {
    for (Box* b : row) {
      double sum = 0;
      for (const int r : b->reads) sum += boxes[r].x + boxes[r].width / 2;
      b->wish = b->reads.empty() ? 0 : sum / static_cast<double>(b->reads.size());
    }
    std::stable_sort(row.begin(), row.end(), [](const Box* a, const Box* b) { return a->wish < b->wish; });
    double x = kMargin, tallest = 0;
    for (Box* b : row) {
      b->x = std::max(x, b->wish - b->width / 2);
      b->y = y;
      x = b->x + b->width + kGapX;
      tallest = std::max(tallest, b->height);
    }
    widest = std::max(widest, x);
    y += tallest + kGapY;
  }
  return {widest, y};
}

}  // namespace

std::string to_svg(const Graph& g, const Blocks& blocks) {
  std::vector<Box> boxes = boxes_of(g, blocks);
  auto [width, height] = place(boxes);
  const double legend_top = height;
  for (const auto& name : blocks.names) width = std::max(width, kCharacter * static_cast<double>(name.size()) + 3 * kMargin + 20);
  height += 20 * static_cast<double>(blocks.names.size()) + kMargin;
  std::string s = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"monospace\" font-size=\"11\">\n<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n",
      width, height, xml(g.name));
  for (const Box& b : boxes) {
    for (const int r : b.reads) {
      const Box& a = boxes[r];
      const double x1 = a.x + a.width / 2, y1 = a.y + a.height, x2 = b.x + b.width / 2, y2 = b.y;
      s += fmt::format(
          "<path d=\"M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"#888888\"/>\n", x1, y1,
          x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2);
    }
  }
  for (const Box& b : boxes) {
    s += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\" stroke=\"#444444\"{}/>\n", b.x,
        b.y, b.width, b.height, b.fill, b.dash);
    for (std::size_t i = 0; i < b.lines.size(); ++i) {
      s += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", b.x + 8, b.y + 16 + kLine * static_cast<double>(i),
                       i == 0 && b.lines.size() > 1 ? " font-weight=\"bold\"" : "", xml(b.lines[i]));
    }
  }
  for (std::size_t i = 0; i < blocks.names.size(); ++i) {
    const double y = legend_top + 20 * static_cast<double>(i);
    s += fmt::format("<rect x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"12\" height=\"12\" fill=\"{2}\" stroke=\"#444444\"/>\n", kMargin,
                     y, block_colour(i));
    s += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kMargin + 20, y + 10, xml(blocks.names[i]));
  }
  if (g.nodes.size() > kMaxNodes) {
    s += fmt::format("<text x=\"{:.1f}\" y=\"14\">the first {} of {} nodes</text>\n", kMargin, kMaxNodes, g.nodes.size());
  }
  return s + "</svg>\n";
}

}  // namespace fuselab
