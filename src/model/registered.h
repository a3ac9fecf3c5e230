// Tensors of a module by dotted names, so that a list of names makes the tree of modules.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <torch/nn/module.h>

namespace cautious::model {

// Of "a.b.c": the submodule b of the submodule a, made where it does not exist, and "c".
inline std::pair<::torch::nn::Module*, std::string> owner_of(::torch::nn::Module& root, const std::string& name) {
  ::torch::nn::Module* module = &root;
  std::size_t begin = 0;
  for (std::size_t dot = name.find('.'); dot != std::string::npos; begin = dot + 1, dot = name.find('.', begin)) {
    const std::string child = name.substr(begin, dot - begin);
    const auto children = module->named_children();
    const auto* const found = children.find(child);
    module = found != nullptr ? found->get() : module->register_module(child, std::make_shared<::torch::nn::Module>()).get();
  }
  return {module, name.substr(begin)};
}

// Moved first where `place` names a device or a type.
inline at::Tensor registered_parameter(::torch::nn::Module& root, const std::string& name, const at::Tensor& tensor,
                                       const at::TensorOptions& place = {}) {
  const auto [module, last] = owner_of(root, name);
  return module->register_parameter(last, tensor.to(place));
}

inline at::Tensor registered_buffer(::torch::nn::Module& root, const std::string& name, const at::Tensor& tensor) {
  const auto [module, last] = owner_of(root, name);
  return module->register_buffer(last, tensor);
}

}  // namespace cautious::model
