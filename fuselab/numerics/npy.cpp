// The .npy format, versions 1 to 3, little endian.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "fuselab/core/error.h"
#include "fuselab/numerics/tensor_file.h"

namespace fuselab::numerics {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr std::size_t kMagicLength = 6;

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

/// Reads the header's Python dictionary: only what the format allows, in any order.
class HeaderParser {
 public:
  HeaderParser(std::string text, const std::string& path) : text_(std::move(text)), path_(path) {}

  Header parse() {
    Header header;
    bool have[3] = {false, false, false};
    expect('{');
    while (!at('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !have[0]) {
        header.descr = quoted();
        have[0] = true;
      } else if (key == "fortran_order" && !have[1]) {
        header.fortran = boolean();
        have[1] = true;
      } else if (key == "shape" && !have[2]) {
        header.shape = tuple();
        have[2] = true;
      } else {
        bad("the key '" + key + "' is unknown or given twice");
      }
      if (!at('}')) expect(',');
    }
    expect('}');
    skip();
    if (pos_ != text_.size()) bad("something follows the header's dictionary");
    if (!have[0] || !have[1] || !have[2]) bad("its header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void bad(const std::string& why) const { fail("npy.malformed", "{} is not a valid .npy file: {}.", path_, why); }
  void skip() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t')) ++pos_;
  }
  bool at(char c) {
    skip();
    return pos_ < text_.size() && text_[pos_] == c;
  }
  void expect(char c) {
    if (!at(c)) bad(fmt::format("'{}' is missing in its header", c));
    ++pos_;
  }
  std::string quoted() {
    skip();
    const char quote = pos_ < text_.size() ? text_[pos_] : 0;
    if (quote != '\'' && quote != '"') bad("a quoted name is missing in its header (structured dtypes are not read)");
    const auto end = text_.find(quote, pos_ + 1);
    if (end == std::string::npos) bad("a quote is not closed in its header");
    const std::string out = text_.substr(pos_ + 1, end - pos_ - 1);
    pos_ = end + 1;
    return out;
  }
  bool boolean() {
    skip();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.compare(pos_, std::strlen(word), word) == 0) {
        pos_ += std::strlen(word);
        return value;
      }
    }
    bad("fortran_order is neither True nor False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> out;
    expect('(');
    while (!at(')')) {
      std::int64_t n = 0;
      const std::size_t start = pos_;
      for (; pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9'; ++pos_) {
        if (n > (std::numeric_limits<std::int64_t>::max() - 9) / 10) bad("a size does not fit in 63 bits");
        n = n * 10 + (text_[pos_] - '0');
      }
      if (pos_ == start) bad("a size is no number");
      out.push_back(n);
      if (!at(')')) expect(',');
    }
    expect(')');
    return out;
  }

  std::string text_;
  const std::string& path_;
  std::size_t pos_ = 0;
};

std::optional<DType> dtype_of(const std::string& descr) {
  static const std::pair<const char*, DType> kTypes[] = {{"<f2", DType::f16},  {"<f4", DType::f32},  {"<f8", DType::f64},
                                                         {"|i1", DType::i8},   {"|u1", DType::u8},   {"<i2", DType::i16},
                                                         {"<i4", DType::i32},  {"<i8", DType::i64},  {"|b1", DType::boolean},
                                                         {"|V2", DType::bf16}, {"<V2", DType::bf16}, {"bfloat16", DType::bf16}};
  for (const auto& [text, type] : kTypes) {
    if (descr == text) return type;
  }
  return std::nullopt;
}

}  // namespace

Tensor detail::parse_npy(const char* bytes, std::size_t size, const std::string& path, const std::shared_ptr<void>& keep) {
  const auto bad = [&](const std::string& why) { fail("npy.malformed", "{} is not a valid .npy file: {}.", path, why); };
  if (size < 10 || std::memcmp(bytes, kMagic, kMagicLength) != 0) bad("it does not begin with NumPy's mark");
  const int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3) bad(fmt::format("its format version is {}, known are 1 to 3", major));
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (size < 8 + length_bytes) bad("it ends inside the header");
  std::size_t header_length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i)
    header_length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  const std::size_t begin = 8 + length_bytes;
  if (header_length > size - begin) bad("it ends inside the header");
  const Header header = HeaderParser(std::string(bytes + begin, header_length), path).parse();
  const auto dtype = dtype_of(header.descr);
  if (!dtype) {
    fail("npy.dtype", "{} holds '{}'; little-endian f2, f4, f8, i1, u1, i2, i4, i8, b1 and two-byte void (bf16) are read.", path,
         header.descr);
  }
  std::int64_t count = 1;
  bool empty = false;
  for (std::int64_t s : header.shape) empty = empty || s == 0;
  for (std::int64_t s : header.shape) {
    if (!empty && s > std::numeric_limits<std::int64_t>::max() / 16 / count) bad("its shape is larger than any memory");
    count = empty ? 0 : count * s;
  }
  const std::size_t data_bytes = size - begin - header_length;
  if (static_cast<std::size_t>(count) * static_cast<std::size_t>(size_of(*dtype)) != data_bytes) {
    bad(fmt::format("its shape needs {} bytes, it holds {}", static_cast<std::size_t>(count) * size_of(*dtype), data_bytes));
  }
  std::vector<std::int64_t> strides = contiguous_strides(header.shape);
  if (header.fortran) {
    std::int64_t step = 1;
    for (std::size_t d = 0; d < header.shape.size(); ++d) {
      strides[d] = step;
      step *= std::max<std::int64_t>(header.shape[d], 1);
    }
  }
  const char* data = bytes + begin + header_length;
  if (*dtype == DType::boolean) {
    for (std::size_t i = 0; i < data_bytes; ++i) {
      if (static_cast<unsigned char>(data[i]) > 1) bad("a bool is neither 0 nor 1");
    }
  }
  return Tensor::view_of(*dtype, header.shape, strides, const_cast<char*>(data), keep);
}

}  // namespace fuselab::numerics
