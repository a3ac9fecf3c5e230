// The paper's table of image classifiers as plans, and what such plans cost.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "model/vision/config.h"
#include "study/reproduce.h"
#include "study_plan.h"

namespace cautious::study {
namespace image_plans_test {

// Every optimizer has plain decay, none, CWD and a random mask that follows CWD, and CWD against plain decay is what is asked.
TEST(ImagePlans, AreOptimizersTimesDecays) {
  std::map<std::string, std::string> numbers;
  for (const char* name : {"table-imagenet", "table-vit-b"}) {
    for (const Experiment& experiment : experiments(name, Scale::day)) {
      for (const PaperNumber& entry : experiment.plan.paper) numbers[entry.what] = entry.number;
      std::set<std::string> arms;
      for (const Arm& arm : experiment.plan.arms) arms.insert(arm.name);
      std::size_t primary = 0;
      for (const Contrast& contrast : experiment.plan.contrasts) {
        if (!contrast.primary) continue;
        ++primary;
        EXPECT_EQ(contrast.a, contrast.b + "+cwd");
        for (const char* decay : {"+none", "+cwd", "+random"}) EXPECT_TRUE(arms.contains(contrast.b + decay));
      }
      EXPECT_EQ(arms.size(), 4 * primary) << experiment.name;
      EXPECT_EQ(primary, std::string_view(name) == "table-vit-b" ? 3u : 4u);
    }
  }
  EXPECT_EQ(numbers.size(), 18u);
  EXPECT_EQ(numbers["AdamW, ViT-S/16, top-1 accuracy (%)"], "78.84");
  EXPECT_EQ(numbers["Lion + CWD, ResNet-50, top-1 accuracy (%)"], "76.75");
  EXPECT_EQ(numbers["Muon + CWD, ViT-B/16, top-1 accuracy (%)"], "81.04");
}

TEST(ImagePlans, CostTheOperationsOfTheirImages) {
  Experiment experiment{.name = "", .reproduces = {}, .plan = small({{"model.preset", "vit-nano-4"}, {"train.steps", "7"}})};
  experiment.plan.base.insert(experiment.plan.base.end(),
                              {{"train.batch_size", "32"}, {"eval.every", "0"}, {"eval.images", "600"}});
  const double per_image = size_of(model::image_preset("vit-nano-4"), 32).flops_per_image;
  EXPECT_NEAR(cost_of(experiment).core_hours, ((7 * 32 + 600 / 3.0) * per_image / 30e9 + 3) / 3600, 1e-9);
}

}  // namespace image_plans_test
}  // namespace cautious::study
