#include "fuselab/perfdb/profile_reader.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/core/mapped_file.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20, kLongestRow = std::size_t{64} << 20;

}  // namespace

struct ProfileReader::Source {
  explicit Source(const std::string& path) : file(path) {}
  ~Source() {
    if (packed) inflateEnd(&z);
  }
  MappedFile file;
  bool packed = false, ended = false;
  z_stream z{};
  std::size_t consumed = 0;
  std::string buffer;  ///< unpacked text; `window_` is its rest
};

ProfileReader::ProfileReader(const std::string& path) : path_(path), source_(std::make_unique<Source>(path)) {
  Source& s = *source_;
  const std::string_view bytes(s.file.data(), s.file.size());
  bytes_ = bytes.size();
  s.packed = bytes.starts_with("\x1f\x8b");
  if (s.packed) {
    if (inflateInit2(&s.z, 15 + 32) != Z_OK) fail("file.gzip", "{}: cannot unpack.", path);
    fill(kPiece);
  } else {
    window_ = bytes;
  }
  if (window_.starts_with("\xef\xbb\xbf")) window_.remove_prefix(3);
  refuse_lfs_pointer(window_, path);
  if (window_.empty()) fail("db.no_header", "{}: the file is empty, a CSV has a header line at least.", path);
  const std::string_view start = window_.substr(0, kPiece);
  if (start.substr(0, 4096).find('\0') != std::string_view::npos) {
    fail("csv.malformed", "{}: zero bytes are in the text: this is no CSV in UTF-8 (UTF-16 must be converted).", path);
  }
  bool quoted = false;
  std::size_t end = 0;
  while (end < start.size() && (quoted || (start[end] != '\n' && start[end] != '\r'))) quoted ^= start[end++] == '"';
  if (end == start.size() && start.size() == kPiece) fail("csv.malformed", "{}: the header line has no end.", path);
  if (end < start.size() && start[end] == '\r') ++end;
  if (end < start.size() && start[end] == '\n') ++end;
  header_ = window_.substr(0, end);
  window_.remove_prefix(end);
}

ProfileReader::~ProfileReader() = default;

/// Makes the window hold `wanted` characters if there are as many. False: the text ends with the window.
bool ProfileReader::fill(std::size_t wanted) {
  Source& s = *source_;
  if (!s.packed) return window_.size() > wanted;
  if (window_.size() >= wanted || s.ended) return !s.ended;
  std::string next(window_);
  const std::string_view bytes(s.file.data(), s.file.size());
  while (next.size() < wanted && !s.ended) {
    if (s.z.avail_in == 0 && s.consumed < bytes.size()) {
      const std::size_t n = std::min<std::size_t>(bytes.size() - s.consumed, std::size_t{1} << 20);
      s.z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + s.consumed));
      s.z.avail_in = static_cast<uInt>(n);
      s.consumed += n;
    }
    const std::size_t have = next.size();
    next.resize(have + (std::size_t{1} << 20));
    s.z.next_out = reinterpret_cast<Bytef*>(next.data() + have);
    s.z.avail_out = 1U << 20;
    const int rc = inflate(&s.z, Z_NO_FLUSH);
    next.resize(have + (std::size_t{1} << 20) - s.z.avail_out);
    if (rc == Z_STREAM_END && s.z.avail_in == 0 && s.consumed == bytes.size()) {
      s.ended = true;
    } else if (rc == Z_STREAM_END) {
      if (inflateReset(&s.z) != Z_OK) fail("file.gzip", "{}: the compressed file is damaged.", path_);
    } else if (rc != Z_OK) {
      fail("file.gzip", "{}: the compressed file is damaged or cut off.", path_);
    }
  }
  s.buffer = std::move(next);
  window_ = s.buffer;
  return !s.ended;
}

/// Where the last whole row of `text` ends; 0: no row ends in it. A line end between quotes ends no row.
std::size_t ProfileReader::rows_end(std::string_view text, bool last) const {
  bool odd = std::count(text.begin(), text.end(), '"') % 2 != 0;
  if (last) {
    if (odd) fail("csv.malformed", "{}: a quote is never closed.", path_);
    return text.size();
  }
  for (std::size_t i = text.size(); i > 0; --i) {
    if (text[i - 1] == '"') odd = !odd;
    if (text[i - 1] == '\n' && !odd) return i;
  }
  return 0;
}

std::optional<ProfileReader::Piece> ProfileReader::next() {
  for (std::size_t wanted = kPiece;; wanted *= 2) {
    const bool more = fill(wanted);
    if (window_.empty()) return std::nullopt;
    const std::string_view text = window_.substr(0, wanted);
    const bool last = !more && text.size() == window_.size();
    if (const std::size_t end = rows_end(text, last)) {
      Piece piece;
      if (source_->packed) {
        piece.own = text.substr(0, end);
      } else {
        piece.mapped = text.substr(0, end);
      }
      window_.remove_prefix(end);
      return piece;
    }
    if (wanted > kLongestRow) {
      fail("csv.malformed", "{}: a row is longer than {} MiB; a quote that is never closed makes one.", path_, kLongestRow >> 20);
    }
  }
}

void ProfileReader::done(const Piece& piece) {
  if (!source_->packed) MappedFile::forget(piece.mapped.data(), piece.mapped.size());
}

std::uint64_t ProfileReader::bytes_done() const { return source_->packed ? source_->consumed : bytes_ - window_.size(); }

}  // namespace fuselab::perfdb
