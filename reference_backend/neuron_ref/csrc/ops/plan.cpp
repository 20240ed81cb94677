#include "ops/plan.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace neuron_ref {
namespace {

// Operators whose contract allows or demands CPU tensors beside device tensors, on every device.
constexpr std::array kAllowsCpuTensors = {
    std::string_view("aten::copy_"), // its purpose
    std::string_view("aten::_copy_from"),
    std::string_view("aten::index.Tensor"), // indices may lie on the CPU
    std::string_view("aten::index.Tensor_out"),
    std::string_view("aten::_index_put_impl_"),
    std::string_view("aten::index_put_"),
    std::string_view("aten::_unsafe_index.Tensor"),
    std::string_view("aten::_unsafe_index_put"),
    std::string_view("aten::_pack_padded_sequence"), // lengths
    std::string_view("aten::_pack_padded_sequence_backward"),
    std::string_view("aten::_ctc_loss.Tensor"), // lengths
    std::string_view("aten::_ctc_loss_backward.Tensor"),
    std::string_view("aten::_nested_view_from_buffer"), // sizes, strides, offsets
    std::string_view("aten::_nested_tensor_from_tensor_list"),
    std::string_view("aten::nested_to_padded_tensor"),
    std::string_view("aten::_nested_from_padded"),
    std::string_view("aten::_nested_from_padded_and_nested_example"),
    std::string_view("aten::_foreach_addcdiv.Tensor"), // scalars
    std::string_view("aten::_foreach_addcdiv_.Tensor"),
    std::string_view("aten::_foreach_addcmul.Tensor"),
    std::string_view("aten::_foreach_addcmul_.Tensor"),
    std::string_view("aten::tensor_split.tensor_indices_or_sections"), // indices
    std::string_view("aten::repeat_interleave.Tensor"),
};

constexpr std::array kNeedsRequiresGrad = {
    std::string_view("aten::_sparse_mm_reduce_impl"),
};

constexpr std::array kDrawsFromDefaultGenerator = {
    std::string_view("aten::native_dropout"),
    std::string_view("aten::native_dropout.out"),
};

struct HostReturns {
  std::string_view name;
  std::uint32_t bits;
};

constexpr std::array kHostReturns = {
    HostReturns{"aten::_pack_padded_sequence", 0b10}, // batch_sizes
    HostReturns{"aten::_nested_tensor_size", 0b1},
    HostReturns{"aten::_nested_tensor_strides", 0b1},
    HostReturns{"aten::_nested_tensor_storage_offsets", 0b1},
};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType
      ? *static_cast<const c10::OptionalType&>(type).getElementType()
      : type;
}

// False for arguments that the executor passes on as they are.
bool classify(const c10::Type& declared, Plan::Kind* kind) {
  const c10::Type& type = without_optional(declared);
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      *kind = Plan::Kind::tensor;
      return true;
    case c10::TypeKind::GeneratorType:
      *kind = Plan::Kind::generator;
      return true;
    case c10::TypeKind::DeviceObjType:
      *kind = Plan::Kind::device;
      return true;
    case c10::TypeKind::ListType: {
      const c10::Type& element = *static_cast<const c10::ListType&>(type).getElementType();
      if (element.kind() == c10::TypeKind::TensorType) {
        *kind = Plan::Kind::tensor_list;
        return true;
      }
      if (element.kind() == c10::TypeKind::OptionalType &&
          without_optional(element).kind() == c10::TypeKind::TensorType) {
        *kind = Plan::Kind::optional_tensor_list;
        return true;
      }
      return false;
    }
    default:
      return false;
  }
}

} // namespace

Plan::Plan(const c10::FunctionSchema& schema)
    : name(c10::toString(schema.operator_name())),
      argument_count(static_cast<std::uint16_t>(schema.arguments().size())),
      return_count(static_cast<std::uint16_t>(schema.returns().size())) {
  for (std::size_t position = 0; position < schema.arguments().size(); ++position) {
    const c10::Argument& argument = schema.arguments()[position];
    argument_names.push_back(argument.name());
    Kind kind{};
    if (classify(*argument.real_type(), &kind)) {
      const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
      arguments.push_back({static_cast<std::uint16_t>(position), kind, written});
    }
  }
  is_functional = std::all_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    return result.alias_info() == nullptr;
  });
  needs_requires_grad = contains(kNeedsRequiresGrad, name);
  allows_cpu_tensors = contains(kAllowsCpuTensors, name);
  draws_from_default_generator = contains(kDrawsFromDefaultGenerator, name);
  for (const HostReturns& entry : kHostReturns) {
    if (entry.name == name) {
      host_returns = entry.bits;
    }
  }
  is_float_add = name == "aten::add.Tensor";
  is_sum = name == "aten::sum" || name == "aten::sum.dim_IntList";
}

} // namespace neuron_ref
