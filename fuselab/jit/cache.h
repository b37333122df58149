// The kernel cache: object files in a folder that processes share.
//
// An entry is written aside, synced and renamed, so a reader sees all of it or nothing, whatever dies when. Every entry carries a
// checksum of its contents and its full key: a damaged one is never used, but removed with a warning and made again.
// A folder that cannot be read or written costs the cache, not the work: one warning, then kernels compile in memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fuselab/jit/jit.h"

namespace fuselab::jit {

/// The key of a kernel's object code: text, target, compiler version, fuselab version. 32 hex digits. No host property is in it.
std::string cache_key(const std::string& text, const Target& target);

class Cache {
 public:
  /// The folder need not exist; the first put() makes it.
  explicit Cache(std::string folder);
  /// FUSELAB_CACHE_DIR, else $XDG_CACHE_HOME/fuselab, else ~/.cache/fuselab; "" (no cache) when no home is known.
  static std::string default_folder();

  const std::string& folder() const { return folder_; }

  /// The object bytes kept under that key; nothing when absent, damaged (warned about, removed) or unreadable (warned about
  /// once).
  std::optional<std::vector<char>> get(const std::string& key) const;
  /// Keeps them. Failure is a warning, once per folder. Safe against other writers of the same key.
  void put(const std::string& key, const std::vector<char>& object) const;

  struct Entry {
    std::string key;
    std::int64_t bytes = 0;
    std::int64_t modified = 0;  ///< seconds since 1970
    bool damaged = false;       ///< verify() sets it; list() does not read contents
    std::string reason;         ///< what is wrong with a damaged one
  };
  /// All entries, by key. Throws Error("cache.unreadable") when the folder exists but cannot be listed.
  std::vector<Entry> list() const;
  /// As list(), each read and checked.
  std::vector<Entry> verify() const;
  /// Removes all entries and what dead writers left; returns how many entries went. Throws Error("cache.unwritable").
  std::int64_t clear() const;

 private:
  std::string path_of(const std::string& key) const;
  std::string folder_;
};

}  // namespace fuselab::jit
