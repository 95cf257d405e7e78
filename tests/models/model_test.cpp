// SPDX-License-Identifier: Apache-2.0
// Models: building from layers, running, saving and loading, and every way in which a saved model can be damaged.
#include "../../models/model.hpp"

#include "../support/errors.hpp"
#include "../support/temporary_folder.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <vitro/core/random.hpp>
#include <vitro/models/lenet.hpp>
#include <vitro/models/model_folder.hpp>
#include <vitro/models/sealed_json.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;
using vitro_test::error_of;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// A model with every kind of layer and a residual connection.
Model small_model() {
  const ops::Conv2dAttrs same{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .groups = 2};
  return Model("small", {6, 6, 2},
               {{"conv", Conv2dLayer{.out_channels = 4,
                                     .kernel_h = 3,
                                     .kernel_w = 3,
                                     .attrs = {.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}}},
                {"relu", ReluLayer{}},
                {"grouped", Conv2dLayer{.out_channels = 4, .kernel_h = 3, .kernel_w = 3, .attrs = same, .bias = false}},
                {"sum", AddLayer{}, {"grouped", "relu"}},
                {"max", MaxPool2dLayer{{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}}},
                {"average",
                 AveragePool2dLayer{{.kernel_h = 2, .kernel_w = 2, .ceil_mode = true, .divisor = ops::AverageDivisor::window}}},
                {"flatten", FlattenLayer{}},
                {"fc", LinearLayer{3, false}}},
               5);
}

std::vector<float> scores(const Model& model) {
  Context context;
  Tape tape(context);
  Tensor x({2, 6, 6, 2});
  fill_uniform(x, -1.0F, 1.0F, Philox(3, 3));
  const Var y = model.forward(tape.input(x.view()), model.place_constants(tape));
  const ConstTensorView view = tape.value(y);
  return {view.data(), view.data() + view.elements()};
}

Result<Model> decode(const std::string& json, std::span<const std::byte> weights) {
  const Result<ModelDocument> document = read_model_json(json, "model.json");
  if (!document) return document.error();
  return decode_model(document.value(), weights, "the weights");
}

}  // namespace

TEST_CASE("LeNet-5 has the shapes and the 44426 parameters that its layers add up to") {
  const Model model = models::lenet5();
  CHECK(model.input_shape() == Shape({28, 28, 1}));
  CHECK(model.output_shape() == Shape({10}));
  CHECK(model.parameter_count() == 5 * 5 * 6 + 6 + 5 * 5 * 6 * 16 + 16 + 256 * 120 + 120 + 120 * 84 + 84 + 84 * 10 + 10);
  REQUIRE(model.parameters().size() == 10);
  CHECK(model.parameters()[2].name == "conv2.weight");
  CHECK(model.parameters()[2].value.shape() == Shape({5, 5, 6, 16}));
}

TEST_CASE("Initial weights lie within 1/sqrt(fan_in), differ by layer and by seed, and repeat") {
  const Model model = models::lenet5(1);
  for (const Parameter& parameter : model.parameters()) {
    const Shape& weight =
        model.parameters()[static_cast<std::size_t>(&parameter - model.parameters().data()) / 2 * 2].value.shape();
    const double bound = 1.0 / std::sqrt(static_cast<double>(weight.elements() / weight[weight.rank() - 1]));
    double largest = 0;
    for (float value : parameter.value.span()) largest = std::max(largest, std::abs(static_cast<double>(value)));
    CHECK(largest <= bound * 1.000001);
    CHECK(largest > bound * 0.5);
  }
  CHECK(models::lenet5(1).weights_sha256() == model.weights_sha256());
  CHECK(models::lenet5(2).weights_sha256() != model.weights_sha256());
}

TEST_CASE("A residual connection adds the two layers it names") {
  const Model model = small_model();
  Context context;
  Tape tape(context);
  Tensor x({1, 6, 6, 2});
  fill_uniform(x, -1.0F, 1.0F, Philox(3, 3));
  const std::vector<Var> outputs = model.forward_layers(tape.input(x.view()), model.place_constants(tape));
  const ConstTensorView relu = tape.value(outputs[1]), grouped = tape.value(outputs[2]), sum = tape.value(outputs[3]);
  for (Index i = 0; i < sum.elements(); ++i) REQUIRE(sum.data()[i] == grouped.data()[i] + relu.data()[i]);
}

TEST_CASE("A layer that does not fit is named") {
  const auto message = [](std::vector<Layer> layers) { return error_of([&] { Model("m", {6, 6, 2}, layers, 1); }).message(); };
  CHECK_THAT(message({}), ContainsSubstring("no layers"));
  CHECK_THAT(message({{"a", ReluLayer{}}, {"a", ReluLayer{}}}),
             ContainsSubstring("layer 1 (a, relu)") && ContainsSubstring("unique"));
  CHECK_THAT(message({{"input", ReluLayer{}}}), ContainsSubstring("unique"));
  CHECK_THAT(message({{"fc", LinearLayer{3}}}), ContainsSubstring("layer 0 (fc, linear)"));
  CHECK_THAT(message({{"a", ReluLayer{}, {"later"}}, {"later", ReluLayer{}}}),
             ContainsSubstring("\"later\" is not an earlier layer"));
  CHECK_THAT(message({{"a", AddLayer{}}}), ContainsSubstring("1 inputs and needs 2"));
  CHECK_THAT(message({{"a", FlattenLayer{}}, {"b", AddLayer{}, {"a", "input"}}}), ContainsSubstring("must be equal"));
  CHECK_THAT(message({{"c", Conv2dLayer{.out_channels = 1, .kernel_h = 9, .kernel_w = 9, .attrs = {}}}}),
             ContainsSubstring("layer 0 (c, conv2d)"));
}

TEST_CASE("A batch of the wrong shape is refused with both shapes") {
  const Model model = small_model();
  Context context;
  Tape tape(context);
  const Tensor x({2, 5, 6, 2});
  const std::string message = error_of([&] { model.forward(tape.input(x.view()), model.place_constants(tape)); }).message();
  CHECK_THAT(message, ContainsSubstring("[6, 6, 2]") && ContainsSubstring("[2, 5, 6, 2]"));
}

TEST_CASE("A saved model comes back with the same structure, weights and scores") {
  const vitro_test::TemporaryFolder folder;
  const Model model = small_model();
  model.save(folder.path() + "/deep/er");
  const Model loaded = Model::load(folder.path() + "/deep/er");
  CHECK(loaded.name() == model.name());
  CHECK(model_to_json(loaded, {}) == model_to_json(model, {}));
  CHECK(scores(loaded) == scores(model));
  models::lenet5(9).save(folder.path() + "/deep/er");  // over it
  CHECK(Model::load(folder.path() + "/deep/er").weights_sha256() == models::lenet5(9).weights_sha256());
}

TEST_CASE("Every damage to a model's description is an error that says what would be right") {
  const Model model = small_model();
  const std::vector<std::byte> weights = encode_tensor_file(named_views(model.parameters())).value();
  const SavedFiles files{reference_to(FileKind::weights, weights), std::nullopt};
  const std::string good = model_to_json(model, files);
  REQUIRE(decode(good, weights).ok());
  // Sealed again after the change, so that nothing but the value is wrong.
  const auto error = [&](const std::string& from, const std::string& to) {
    const Result<Json> json = Json::parse(replaced(good, from, to), "changed");
    REQUIRE(json.ok());
    std::vector<Json::Member> members = json.value().members();
    members.pop_back();
    const Result<Model> result = decode(seal_json(Json::object(std::move(members))), weights);
    REQUIRE_FALSE(result.ok());
    return result.error();
  };
  const auto message = [&](const std::string& from, const std::string& to) { return error(from, to).message(); };
  CHECK_THAT(message("\"vitro-model\"", "\"other\""), ContainsSubstring("format") && ContainsSubstring("vitro-model"));
  CHECK_THAT(message("\"version\": 2", "\"version\": 1"), ContainsSubstring("version 1") && ContainsSubstring("version 2"));
  CHECK(error("\"version\": 2", "\"version\": 1").code() == ErrorCode::unsupported);
  CHECK_THAT(message("\"conv2d\"", "\"conv3d\""), ContainsSubstring("layers[0].type") && ContainsSubstring("conv2d"));
  CHECK_THAT(message("\"out_channels\": 4", "\"out_channels\": -4"), ContainsSubstring("layers[0].out_channels"));
  CHECK_THAT(message("\"out_channels\": 4", "\"out_channels\": 5"), ContainsSubstring("grouped"));
  CHECK_THAT(message("\"out_channels\": 4", "\"out_channels\": 16000000"), ContainsSubstring("more than the file"));
  CHECK_THAT(message("\"kernel\": [3, 3]", "\"kernel\": [3]"), ContainsSubstring("must have 2 elements"));
  CHECK_THAT(message("\"kernel\": [3, 3]", "\"kernel\": [3, 70000]"), ContainsSubstring("kernel[1]"));
  CHECK_THAT(message("\"bias\": true", "\"bais\": true"), ContainsSubstring("bais"));
  CHECK_THAT(message("\"window\"", "\"windows\""), ContainsSubstring("divisor"));
  CHECK_THAT(message("[\"grouped\", \"relu\"]", "[\"grouped\", \"max\"]"), ContainsSubstring("not an earlier layer"));
  CHECK_THAT(message("\"name\": \"conv.weight\"", "\"name\": \"conv.weihgt\""), ContainsSubstring("must be conv.weight"));
  const std::string count = std::to_string(model.parameter_count());
  CHECK_THAT(message("\"parameter_count\": " + count, "\"parameter_count\": 7"), ContainsSubstring("must be " + count));
  CHECK_THAT(message(files.weights.file, "../../etc/passwd"),
             ContainsSubstring("weights.file must be \"" + files.weights.file));
  CHECK_THAT(message("\"sha256\": \"", "\"sha256\": \"../"), ContainsSubstring("64 lower-case hexadecimal digits"));
  CHECK_THAT(message(model.weights_sha256().substr(0, 8), "00000000"), ContainsSubstring("weights_sha256 must be"));
  CHECK_THAT(message(files.weights.sha256.substr(16, 8) + files.weights.sha256.substr(24),
                     "00000000" + files.weights.sha256.substr(24)),
             ContainsSubstring("do not belong together"));
  CHECK_THAT(message(",\n  \"sha256\"", ",\n  \"training\": {},\n  \"sha256\""), ContainsSubstring("training"));
  CHECK_THAT(decode(replaced(good, "\"padding\": [0, 0, 0, 0]", "\"padding\": [1, 0, 0, 0]"), weights).error().message(),
             ContainsSubstring("changed after it was written"));
}

TEST_CASE("Weights of another model are refused by the first tensor that differs") {
  const Model model = small_model();
  const std::vector<std::byte> weights = encode_tensor_file(named_views(models::lenet5().parameters())).value();
  const std::string json = model_to_json(model, {reference_to(FileKind::weights, weights), std::nullopt});
  CHECK_THAT(decode(json, weights).error().message(), ContainsSubstring("10 tensors") && ContainsSubstring("4 parameters"));
}

TEST_CASE("Every truncation and every flipped bit of a small model's two files is found") {
  const Model model("tiny", {2}, {{"fc", LinearLayer{2}}}, 1);
  const std::vector<std::byte> good = encode_tensor_file(named_views(model.parameters())).value();
  const std::string json = model_to_json(model, {reference_to(FileKind::weights, good), std::nullopt});
  REQUIRE(decode(json, good).ok());
  for (std::size_t size = 0; size < good.size(); ++size) REQUIRE_FALSE(decode(json, std::span(good).first(size)).ok());
  for (std::size_t size = 0; size < json.size(); ++size) REQUIRE_FALSE(decode(json.substr(0, size), good).ok());
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    REQUIRE_FALSE(decode(json, bad).ok());
  }
  for (std::size_t bit = 0; bit < 8 * json.size(); ++bit) {
    std::string bad = json;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    REQUIRE_FALSE(decode(bad, good).ok());
  }
}

TEST_CASE("A missing file is named") {
  const vitro_test::TemporaryFolder folder;
  CHECK_THAT(error_of([&] { Model::load(folder.path()); }).message(), ContainsSubstring("model.json"));
  models::lenet5().save(folder.path());
  const std::string file = read_model_document(folder.path()).value().files.weights.file;
  std::filesystem::remove(join_path(folder.path(), file));
  CHECK_THAT(error_of([&] { Model::load(folder.path()); }).message(),
             ContainsSubstring(file) && ContainsSubstring("model.json"));
}

TEST_CASE("Only names that a save could have made are taken for files of a save") {
  CHECK(is_saved_file("weights.0123456789abcdef.bin"));
  CHECK(is_saved_file("optimizer.0123456789abcdef.bin"));
  CHECK(is_saved_file("training.0123456789abcdef.json"));
  for (const char* name : {"", "model.json", "weights.bin", "weights.0123456789abcde.bin", "weights.0123456789abcdef0.bin",
                           "weights.0123456789abcdeF.bin", "weights-0123456789abcdef.bin", "weights.0123456789abcdef.json",
                           "training.0123456789abcdef.bin", "xeights.0123456789abcdef.bin", "weights.0123456789abcdef.bin "}) {
    INFO(name);
    CHECK_FALSE(is_saved_file(name));
  }
}
