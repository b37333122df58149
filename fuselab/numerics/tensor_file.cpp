#include "fuselab/numerics/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "fuselab/core/error.h"
#include "fuselab/core/mapped_file.h"
#include "fuselab/core/whole_file.h"
#include "fuselab/numerics/tensor_file_zip.h"

namespace fuselab::numerics {
namespace {

namespace fs = std::filesystem;
using File = std::shared_ptr<MappedFile>;

// The format: https://huggingface.co/docs/safetensors, "Format": 8 bytes of header length, a JSON header, the data.
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the format's own limit

const std::pair<const char*, DType> kSafetensorsTypes[] = {
    {"F16", DType::f16}, {"BF16", DType::bf16}, {"F32", DType::f32}, {"F64", DType::f64}, {"I8", DType::i8},
    {"U8", DType::u8},   {"I16", DType::i16},   {"I32", DType::i32}, {"I64", DType::i64}, {"BOOL", DType::boolean}};

std::optional<DType> safetensors_type(const std::string& text) {
  for (const auto& [name, type] : kSafetensorsTypes) {
    if (text == name) return type;
  }
  return std::nullopt;
}

std::uint64_t header_length(const File& file) {
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(file->data()[i]);
  return length;
}

bool looks_like_safetensors(const File& file) {
  return file->size() >= 10 && header_length(file) <= kLargestHeader && file->data()[8] == '{';
}

NamedTensor safetensors_entry(const File& file, const std::string& name, const nlohmann::json& entry, std::uint64_t begin) {
  const auto bad = [&](const std::string& why) {
    fail("safetensors.malformed", "{} is not a valid .safetensors file: tensor '{}' {}.", file->path(), name, why);
  };
  NamedTensor out;
  out.name = name;
  out.mapped = true;
  std::vector<std::int64_t> sizes;
  std::uint64_t from = 0, to = 0;
  std::string type;
  try {
    type = entry.at("dtype").get<std::string>();
    for (const auto& size : entry.at("shape")) {
      if (!size.is_number_unsigned()) bad("has a size that is no natural number");
      sizes.push_back(size.get<std::int64_t>());
    }
    from = entry.at("data_offsets").at(0).get<std::uint64_t>();
    to = entry.at("data_offsets").at(1).get<std::uint64_t>();
  } catch (const nlohmann::json::exception&) {
    bad("lacks dtype, shape or data_offsets, or one is of the wrong kind");
  }
  const std::uint64_t room = file->size() - begin;
  if (from > to || to > room) bad(fmt::format("lies at bytes {} to {} of {}", from, to, room));
  const auto dtype = safetensors_type(type);
  if (!dtype) {
    out.problem = fmt::format("its dtype {} is not one of ours", type);
    return out;
  }
  std::int64_t count = 0;
  try {
    count = element_count(sizes);
  } catch (const Error&) {
    bad("has a shape larger than any memory");
  }
  if (static_cast<std::uint64_t>(count) > room || static_cast<std::uint64_t>(count) * size_of(*dtype) != to - from) {
    bad(fmt::format("holds {} bytes, its shape and dtype need another number", to - from));
  }
  const char* at = file->data() + begin + from;
  out.load = [=] { return Tensor::view_of(*dtype, sizes, contiguous_strides(sizes), const_cast<char*>(at), file); };
  return out;
}

std::vector<NamedTensor> open_safetensors(const File& file) {
  const std::uint64_t length = header_length(file);
  if (length > file->size() - 8) {
    fail("safetensors.malformed", "{} is not a valid .safetensors file: it ends inside the header.", file->path());
  }
  nlohmann::ordered_json header;
  try {
    header = nlohmann::ordered_json::parse(file->data() + 8, file->data() + 8 + length);
  } catch (const nlohmann::json::exception& e) {
    fail("safetensors.malformed", "{} is not a valid .safetensors file: its header is no JSON ({}).", file->path(), e.what());
  }
  std::vector<NamedTensor> out;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") out.push_back(safetensors_entry(file, name, entry, 8 + length));
  }
  return out;
}

std::vector<NamedTensor> open_file(const std::string& path) {
  const auto file = std::make_shared<MappedFile>(path);
  const auto begins_with = [&](const char* mark, std::size_t n) {
    return file->size() >= n && std::memcmp(file->data(), mark, n) == 0;
  };
  if (begins_with("\x93NUMPY", 6)) {
    NamedTensor one;
    one.name = fs::path(path).stem().string();
    one.mapped = true;
    one.load = [file, path] { return detail::parse_npy(file->data(), file->size(), path, file); };
    try {
      one.load();  // a damaged file is an error now, a foreign dtype a note
    } catch (const Error& e) {
      if (e.code() != "npy.dtype") throw;
      one.problem = e.what();
    }
    return {one};
  }
  if (begins_with("PK\x03\x04", 4) || begins_with("PK\x05\x06", 4)) return detail::open_zip(file);
  if (looks_like_safetensors(file)) return open_safetensors(file);
  fail("file.unknown_format", "{} is neither .npy, .npz, .safetensors nor a .pt file in the zip form (PyTorch 1.6 and later).",
       path);
}

bool is_tensor_file(const fs::path& path) {
  static const char* const kEndings[] = {".npy", ".npz", ".safetensors", ".pt", ".pth"};
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](const char* e) { return path.extension() == e; });
}

std::vector<NamedTensor> open_folder(const std::string& path) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied)) {
    if (entry.is_regular_file() && is_tensor_file(entry.path())) files.push_back(entry.path());
  }
  if (files.empty()) fail("file.unreadable", "{} holds no .npy, .npz, .safetensors, .pt or .pth file.", path);
  std::sort(files.begin(), files.end());
  std::vector<NamedTensor> out;
  for (const fs::path& file : files) {
    const fs::path place = file.lexically_relative(path);
    for (NamedTensor& t : open_file(file.string())) {
      t.name = file.extension() == ".npy" ? (place.parent_path() / place.stem()).string() : place.string() + ":" + t.name;
      out.push_back(std::move(t));
    }
  }
  return out;
}

const char* safetensors_name(DType t) {
  for (const auto& [name, type] : kSafetensorsTypes) {
    if (type == t) return name;
  }
  return "";
}

}  // namespace

std::vector<NamedTensor> open_tensors(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? open_folder(path) : open_file(path);
}

void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::uint64_t at = 0;
  for (const auto& [name, t] : tensors) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(t.numel()) * size_of(t.dtype());
    header[name] = {{"dtype", safetensors_name(t.dtype())}, {"shape", t.sizes()}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8
  char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  std::vector<Tensor> dense;
  std::vector<std::string_view> pieces{{length, 8}, text};
  for (const auto& [name, t] : tensors) {
    const Tensor& d = dense.emplace_back(t.contiguous() ? t : t.contiguous_copy());
    pieces.emplace_back(static_cast<const char*>(d.data()), static_cast<std::size_t>(d.numel()) * size_of(d.dtype()));
  }
  write_whole(path, pieces);
}

}  // namespace fuselab::numerics
