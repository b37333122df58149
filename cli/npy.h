// .npy files: one tensor each, in NumPy's format (versions 1 to 3, little endian).
#pragma once
#include <string>

#include "fuselab/core/tensor.h"

namespace fuselab::cli {

/// Reads a file. bf16 has no name in NumPy: two-byte void (`|V2`), as ml_dtypes writes it, is read as bf16.
/// Throws Error("npy.unreadable" | "npy.malformed" | "npy.dtype") naming the file and what is wrong.
Tensor read_npy(const std::string& path);

/// Writes row-major; bf16 as two-byte void. Throws Error("file.write").
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace fuselab::cli
