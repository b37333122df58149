#include "fuselab/jit/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "fuselab/core/error.h"
#include "fuselab/core/hash.h"
#include "fuselab/core/version.h"
#include "fuselab/core/warn.h"
#include "fuselab/core/whole_file.h"

namespace fuselab::jit {
namespace fs = std::filesystem;
namespace {

constexpr char kMagic[8] = {'F', 'L', 'K', 'E', 'R', 'N', '0', '1'};
constexpr const char* kSuffix = ".flk";
constexpr std::size_t kKeyDigits = 32;

/// What stands before the object bytes in a file.
struct Header {
  char magic[8];
  char key[kKeyDigits];
  std::uint64_t size;      // of the object
  std::uint64_t checksum;  // of the object
  std::uint64_t self;      // of the fields above
};

std::uint64_t header_checksum(const Header& header) { return hash64(&header, offsetof(Header, self)); }

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  /// Closes now and says whether all went to the file system.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// Reads up to `size` bytes; -1 on failure.
ssize_t read_all(int fd, void* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(fd, static_cast<char*>(to) + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

/// The object in a file, or why it cannot be used (`reason`); both empty: there is no such file.
std::optional<std::vector<char>> read_entry(const std::string& path, const std::string& key, std::string& reason, int& error) {
  error = 0;
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) {
    if (errno != ENOENT) error = errno;
    return std::nullopt;
  }
  struct stat info{};
  if (::fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode)) {
    reason = "it is not a regular file";
    return std::nullopt;
  }
  Header header{};
  const ssize_t got = read_all(file.fd(), &header, sizeof header);
  if (got < 0) {
    error = errno;
    return std::nullopt;
  }
  if (got != sizeof header) {
    reason = "it is cut short";
  } else if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    reason = "it does not begin as a kernel file";
  } else if (header.self != header_checksum(header)) {
    reason = "its header does not match its checksum";
  } else if (key != std::string_view(header.key, kKeyDigits)) {
    reason = "it holds another kernel's key";
  } else if (header.size != static_cast<std::uint64_t>(info.st_size) - sizeof header) {
    reason = "its length is not what its header says";
  }
  if (!reason.empty()) return std::nullopt;
  std::vector<char> object(header.size);
  if (read_all(file.fd(), object.data(), object.size()) != static_cast<ssize_t>(object.size())) {
    reason = "it is cut short";
  } else if (hash64(object.data(), object.size()) != header.checksum) {
    reason = "its contents do not match their checksum";
  }
  if (!reason.empty()) return std::nullopt;
  return object;
}

bool is_key(std::string_view text) {
  return text.size() == kKeyDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void warn_unusable(const std::string& folder, const char* what, const std::string& why) {
  warn_once_text(
      "cache.unusable", folder,
      fmt::format("the kernel cache {} cannot be {} ({}): kernels are compiled again in each process; set FUSELAB_CACHE_DIR to "
                  "a folder you may write",
                  folder, what, why));
}

}  // namespace

std::string cache_key(const std::string& text, const Target& target) {
  std::string all;
  for (std::string_view part : {std::string_view("kernel object 1"), version(), llvm_version(), std::string_view(target.isa)}) {
    all.append(part).push_back('\0');
  }
#if defined(__x86_64__)
  all += "x86_64";
#else
  all += "other";
#endif
  all.push_back('\0');
  all += text;
  return hash128_hex(all);
}

Cache::Cache(std::string folder) : folder_(std::move(folder)) {}

std::string Cache::default_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::string folder = variable("FUSELAB_CACHE_DIR"); !folder.empty()) return folder;
  if (std::string base = variable("XDG_CACHE_HOME"); !base.empty()) return base + "/fuselab";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.cache/fuselab";
  return {};
}

// 256 folders, so that none gets slow to list.
std::string Cache::path_of(const std::string& key) const { return folder_ + "/" + key.substr(0, 2) + "/" + key + kSuffix; }

std::optional<std::vector<char>> Cache::get(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  std::string reason;
  int error = 0;
  auto object = read_entry(path, key, reason, error);
  if (error != 0) warn_unusable(folder_, "read", std::strerror(error));
  if (!reason.empty()) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    warn_once_text("cache.damaged", path,
                   fmt::format("the kernel cache entry {} is damaged ({}): it is compiled again", path, reason));
  }
  return object;
}

void Cache::put(const std::string& key, const std::vector<char>& object) const {
  if (folder_.empty()) return;
  const std::string path = path_of(key);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return warn_unusable(folder_, "written", error.message());

  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::memcpy(header.key, key.data(), kKeyDigits);
  header.size = object.size();
  header.checksum = hash64(object.data(), object.size());
  header.self = header_checksum(header);
  try {
    write_whole(path, {{reinterpret_cast<const char*>(&header), sizeof header}, {object.data(), object.size()}});
  } catch (const Error& e) {
    warn_unusable(folder_, "written", e.what());
  }
}

std::vector<Cache::Entry> Cache::list() const {
  std::vector<Entry> entries;
  std::error_code error;
  if (folder_.empty() || !fs::exists(folder_, error)) return entries;
  const fs::directory_iterator readable(folder_, error);  // the folder itself must be
  if (error) fail("cache.unreadable", "the kernel cache {} cannot be listed ({})", folder_, error.message());
  fs::recursive_directory_iterator at(folder_, fs::directory_options::skip_permission_denied, error), end;
  if (error) fail("cache.unreadable", "the kernel cache {} cannot be listed ({})", folder_, error.message());
  for (; at != end; at.increment(error)) {
    if (error) fail("cache.unreadable", "the kernel cache {} cannot be listed ({})", folder_, error.message());
    const fs::path& path = at->path();
    const std::string key = path.stem().string();
    struct stat info{};
    if (path.extension() != kSuffix || !is_key(key) || ::stat(path.c_str(), &info) != 0) continue;
    entries.push_back({key, static_cast<std::int64_t>(info.st_size), static_cast<std::int64_t>(info.st_mtime), false, {}});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return entries;
}

std::vector<Cache::Entry> Cache::verify() const {
  std::vector<Entry> entries = list();
  for (Entry& entry : entries) {
    int error = 0;
    const bool ok = read_entry(path_of(entry.key), entry.key, entry.reason, error).has_value();
    if (error != 0) entry.reason = std::strerror(error);
    entry.damaged = !ok && !entry.reason.empty();  // gone meanwhile: not damaged
  }
  return entries;
}

std::int64_t Cache::clear() const {
  std::int64_t removed = 0;
  std::error_code error;
  if (folder_.empty() || !fs::exists(folder_, error)) return 0;
  std::vector<fs::path> paths;
  for (fs::recursive_directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    // Only what this class wrote: <key>.flk and <key>.flk.<pid>.<n>.part
    if (is_key(name.substr(0, kKeyDigits)) && name.substr(kKeyDigits).starts_with(kSuffix)) paths.push_back(at->path());
  }
  if (error) fail("cache.unreadable", "the kernel cache {} cannot be listed ({})", folder_, error.message());
  for (const fs::path& path : paths) {
    const std::uintmax_t gone = fs::remove_all(path, error);
    if (error) fail("cache.unwritable", "{} cannot be removed ({})", path.string(), error.message());
    if (gone > 0 && path.extension() == kSuffix) ++removed;
    fs::remove(path.parent_path(), error);  // when that was the last one in it
  }
  return removed;
}

}  // namespace fuselab::jit
