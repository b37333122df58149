#include "fuselab/numerics/tensor_file_zip.h"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "fuselab/core/error.h"
#include "fuselab/numerics/pickle.h"

namespace fuselab::numerics::detail {
namespace {

constexpr std::uint64_t kLargestMember = std::uint64_t{1} << 40;

}  // namespace

struct Archive::State {
  unzFile zip = nullptr;
  std::map<std::string, unz64_file_pos> places;
};

Archive::Archive(std::shared_ptr<MappedFile> file) : file_(std::move(file)), state_(std::make_unique<State>()) {
  state_->zip = unzOpen64(file_->path().c_str());
  const auto bad = [&](const char* why) { fail("zip.malformed", "{} is not a valid zip archive: {}.", file_->path(), why); };
  if (!state_->zip) bad("its directory at the end is missing or damaged");
  for (int at = unzGoToFirstFile(state_->zip); at != UNZ_END_OF_LIST_OF_FILE; at = unzGoToNextFile(state_->zip)) {
    if (at != UNZ_OK) bad("its directory is damaged");
    unz_file_info64 info{};
    char name[4096];
    if (unzGetCurrentFileInfo64(state_->zip, &info, name, sizeof name, nullptr, 0, nullptr, 0) != UNZ_OK ||
        info.size_filename >= sizeof name) {
      bad("its directory is damaged");
    }
    unz64_file_pos place{};
    unzGetFilePos64(state_->zip, &place);
    if (!state_->places.emplace(name, place).second) bad("a member's name is there twice");
    names_.emplace_back(name);
  }
}

Archive::~Archive() {
  if (state_->zip) unzClose(state_->zip);
}

bool Archive::has(const std::string& name) const { return state_->places.count(name) > 0; }

Member Archive::read(const std::string& name) const {
  const auto bad = [&](const char* why) { fail("zip.malformed", "{}: member '{}' {}.", file_->path(), name, why); };
  const auto place = state_->places.find(name);
  if (place == state_->places.end()) bad("is missing");
  unz_file_info64 info{};
  int method = 0;
  if (unzGoToFilePos64(state_->zip, &place->second) != UNZ_OK ||
      unzGetCurrentFileInfo64(state_->zip, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) {
    bad("cannot be found");
  }
  if (info.flag & 1) bad("is encrypted");
  if (info.uncompressed_size > kLargestMember) bad("is larger than any memory");
  if (unzOpenCurrentFile2(state_->zip, &method, nullptr, 0) != UNZ_OK) bad("has a damaged header");
  struct Close {
    unzFile zip;
    ~Close() { unzCloseCurrentFile(zip); }
  } close{state_->zip};
  Member out;
  out.size = static_cast<std::size_t>(info.uncompressed_size);
  if (info.compression_method == 0) {  // stored: it can be looked at where it is
    const std::uint64_t begin = unzGetCurrentFileZStreamPos64(state_->zip);
    if (begin > file_->size() || out.size > file_->size() - begin) bad("reaches past the end of the file");
    out.data = file_->data() + begin;
    out.keep = file_;
    out.mapped = true;
    return out;
  }
  // A deflated byte gives at most 1032: a small file that claims more is damaged, and memory is not reserved for it.
  if (out.size / 1040 > info.compressed_size) bad("claims a size that its data cannot have");
  auto unpacked = std::make_shared<std::vector<char>>(out.size + 1);
  std::size_t have = 0;
  while (have < out.size) {
    const auto want = static_cast<unsigned>(std::min<std::size_t>(out.size - have, 1u << 30));
    const int got = unzReadCurrentFile(state_->zip, unpacked->data() + have, want);
    if (got <= 0) bad("cannot be unpacked");
    have += static_cast<std::size_t>(got);
  }
  char more = 0;
  if (unzReadCurrentFile(state_->zip, &more, 1) != 0) bad("is longer than the directory says");
  if (unzCloseCurrentFile(state_->zip) == UNZ_CRCERROR) bad("has a wrong checksum");
  out.data = unpacked->data();
  out.keep = unpacked;
  return out;
}

namespace {

std::vector<NamedTensor> open_npz(const std::shared_ptr<Archive>& archive) {
  std::vector<NamedTensor> out;
  for (const std::string& member : archive->names()) {
    NamedTensor t;
    const bool npy = member.size() > 4 && member.compare(member.size() - 4, 4, ".npy") == 0;
    t.name = npy ? member.substr(0, member.size() - 4) : member;
    const std::string what = archive->path() + ":" + member;
    t.load = [archive, member, what] {
      const Member m = archive->read(member);
      return parse_npy(m.data, m.size, what, m.keep);
    };
    out.push_back(std::move(t));
  }
  return out;
}

std::vector<NamedTensor> open_pt(const std::shared_ptr<Archive>& archive, const std::string& pickle) {
  const std::string folder = pickle.substr(0, pickle.size() - std::strlen("data.pkl"));
  if (archive->has(folder + "byteorder")) {
    const Member order = archive->read(folder + "byteorder");
    if (std::string(order.data, order.size) != "little") {
      fail("pickle.malformed", "{} was written on a big-endian machine; only little-endian files are read.", archive->path());
    }
  }
  const Member program = archive->read(pickle);
  std::vector<NamedTensor> out;
  for (PickledTensor& p : read_pickled_tensors(program.data, program.size, archive->path())) {
    NamedTensor t;
    t.name = p.name;
    t.problem = p.problem;
    t.mapped = true;
    t.load = [archive, folder, p] {
      const Member storage = archive->read(folder + "data/" + p.storage);
      // The last element a view can touch lies inside its storage.
      std::int64_t last = p.offset;
      const bool empty = element_count(p.sizes) == 0;
      bool inside = p.offset >= 0;
      for (std::size_t d = 0; d < p.sizes.size() && !empty; ++d) {
        std::int64_t reach = 0;
        inside = inside && p.strides[d] >= 0 && !__builtin_mul_overflow(p.sizes[d] - 1, p.strides[d], &reach) &&
                 !__builtin_add_overflow(last, reach, &last);
      }
      const auto room = static_cast<std::int64_t>(storage.size / static_cast<std::size_t>(size_of(p.dtype)));
      if (!inside || (!empty && last >= room)) {
        fail("pickle.malformed", "{}: tensor '{}' reaches outside its storage.", archive->path(), p.name);
      }
      const char* at = storage.data + (empty ? 0 : p.offset) * size_of(p.dtype);
      return Tensor::view_of(p.dtype, p.sizes, p.strides, const_cast<char*>(at), storage.keep);
    };
    if (!t.problem.empty()) t.load = nullptr;
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace

std::vector<NamedTensor> open_zip(const std::shared_ptr<MappedFile>& file) {
  const auto archive = std::make_shared<Archive>(file);
  for (const std::string& name : archive->names()) {
    const auto slash = name.find('/');
    if (slash != std::string::npos && name.substr(slash + 1) == "data.pkl") return open_pt(archive, name);
  }
  return open_npz(archive);
}

}  // namespace fuselab::numerics::detail
