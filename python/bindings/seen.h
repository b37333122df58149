// A tensor argument of Python as the core's Tensor, while a function uses it.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "fuselab/core/tensor.h"
#include "tensors.h"

namespace fuselab::python {

/// A Python tensor seen as a Tensor. The tensor must not outlive this.
class Seen {
 public:
  Seen(nanobind::handle object, const std::string& what) {
    borrowed_->view(object.ptr(), what);
    const runtime::InputView& in = borrowed_->input;
    const auto rank = static_cast<std::size_t>(in.rank);
    tensor = Tensor::view_of(in.dtype, {in.sizes, in.sizes + rank}, {in.strides, in.strides + rank}, in.data);
    api = borrowed_->api;
  }
  Tensor tensor;
  const DLPackExchangeAPI* api = nullptr;

 private:
  std::unique_ptr<Borrowed> borrowed_ = std::make_unique<Borrowed>();
};

}  // namespace fuselab::python
