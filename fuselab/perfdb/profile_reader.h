// A profile's text in pieces of whole rows: a mapped file, whose pages are let go again, or a `.gz` that is unpacked as it is
// read. No piece is held longer than its rows are looked at, so a file may be larger than the memory.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fuselab::perfdb {

class ProfileReader {
 public:
  struct Piece {
    std::string_view mapped;
    std::string own;  ///< instead, when it was unpacked
    std::string_view text() const { return own.empty() ? mapped : own; }
  };

  /// Reads up to the header. Throws Error("file.unreadable" | "db.no_header" | "db.lfs_pointer" | "csv.malformed" | "file.gzip").
  explicit ProfileReader(const std::string& path);
  ~ProfileReader();

  std::string_view header() const { return header_; }  ///< without the byte order mark, with its line end
  /// The next rows; nullopt at the end. A row of more than 64 MiB is an error: a quote that is never closed makes one.
  std::optional<Piece> next();
  /// The rows of a piece are not needed any more.
  void done(const Piece& piece);
  std::uint64_t bytes() const { return bytes_; }  ///< of the file
  std::uint64_t bytes_done() const;

 private:
  struct Source;
  bool fill(std::size_t wanted);
  std::size_t rows_end(std::string_view text, bool last) const;

  std::string path_, header_;
  std::unique_ptr<Source> source_;
  std::string_view window_;  ///< text not given out yet
  std::uint64_t bytes_ = 0;
};

}  // namespace fuselab::perfdb
