// Shapes, dtypes and formats as the database's cells write them, and the one signature that import, write-back, lint and lookup
// share.
//
// A cell lists slots separated by `;`. An empty slot is an absent optional input or a scalar and keeps its place: dtypes and
// formats belong to shapes by slot number. Text is kept as read; only the signature is normalised.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab::perfdb {

/// One tensor of a kernel. An empty slot has no dtype and no format whatever its cell says.
struct Slot {
  std::vector<std::int64_t> dims;
  bool present = false;  ///< false: an empty slot
  std::string dtype;     ///< canonical: BF16, FLOAT, INT8, ...
  std::string format;    ///< canonical: ND, FRACTAL_NZ, ...
};

/// How many slots are left when trailing empty ones go.
inline std::size_t used_slots(const std::vector<Slot>& slots) {
  std::size_t n = slots.size();
  while (n > 0 && !slots[n - 1].present) --n;
  return n;
}

/// A cell without the blanks and the literal double quotes that a profiler writes around it.
std::string_view unquoted(std::string_view cell);
/// N/A, NULL, None or nothing: the cell says nothing of shapes.
bool says_nothing(std::string_view cell);
/// The slots of a list; one that ends in `;` has an empty last slot, an empty cell has one.
std::vector<std::string_view> split_slots(std::string_view cell);

/// `DT_BF16` and `BF16` -> BF16; FLOAT, DT_FLOAT, FLOAT32, FP32 -> FLOAT; FLOAT16, FP16, DT_FLOAT16 -> FLOAT16; UNDEFINED, NULL,
/// N/A and empty -> empty. Any case.
std::string canonical_dtype(std::string_view word);
/// FORMAT_ND and ND -> ND; NULL, N/A and empty -> empty.
std::string canonical_format(std::string_view word);
/// Bytes of an element, 0.5 for 4-bit types; nullopt: not known. Takes canonical words.
std::optional<double> dtype_bytes(std::string_view dtype);

/// `136,7168` -> {136, 7168}; `()` and empty -> {}. nullopt: not a list of non-negative integers.
std::optional<std::vector<std::int64_t>> parse_dims(std::string_view slot);
std::string dims_text(const std::vector<std::int64_t>& dims);
/// {..., H, W, h, w} of a FRACTAL_NZ tile -> {..., H w, W h}: the matrix it stores. Lists of three or fewer dims are restored
/// already and come back as they are.
std::vector<std::int64_t> restore_nz(const std::vector<std::int64_t>& dims);

/// The slots of three cells. Trailing empty slots are gone; FRACTAL_NZ dims are restored. nullopt: a slot is no list of sizes.
std::optional<std::vector<Slot>> parse_slots(std::string_view shapes, std::string_view dtypes, std::string_view formats);

/// `split_qkv_rmsnorm_rope_kernel_0` -> without the number, and other spellings of one kernel, as the built-in list says.
std::string normalised_type(std::string_view type);

/// What makes two rows the same kernel on the same data, as text: slots in place, dtypes and formats canonical, trailing empty
/// slots gone. Shapes that are no list of sizes stand as they are. `extra` (EP Size, a kernel hash) is part of it.
std::string signature(std::string_view type, std::string_view in_shapes, std::string_view in_dtypes, std::string_view in_formats,
                      std::string_view out_shapes, std::string_view out_dtypes, std::string_view out_formats,
                      std::string_view extra = {});
/// The same of slots, as a query has them.
std::string signature(std::string_view type, const std::vector<Slot>& inputs, const std::vector<Slot>& outputs,
                      std::string_view extra = {});

/// A type as a file name: `<>:"/\|?*` and control characters become `_`, and a type that had any gets a short hash of itself
/// behind, so that two types never share a file. Empty -> UNKNOWN_TYPE.
std::string file_name_of(std::string_view type);

}  // namespace fuselab::perfdb
