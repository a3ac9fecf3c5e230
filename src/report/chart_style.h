// Colours, dashes and type of a chart. Eight series in the colours of Okabe and Ito, which colour-blind readers can tell apart;
// those too pale for the ground are darker or lighter here, in lines to a contrast of 3, in names to 4.5. A series is told by
// its dash and marker too. No custom properties: some SVG readers do not know them.
#pragma once

#include <cstddef>
#include <string_view>

namespace cautious::report {

inline constexpr std::size_t kSeriesStyles = 8;

// Sizes that the layout has to know.
inline constexpr double kTitleSize = 17, kNameSize = 12.5, kSoftSize = 12, kAxisSize = 11.5, kSmallSize = 10;

inline constexpr std::string_view kChartStyle = R"(
text{font-family:Inter,"Helvetica Neue",Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#1b2330}
.page{fill:#ffffff}
.title{font-size:17px;font-weight:600}
.soft{font-size:12px;fill:#4c5769}
.axis{font-size:11.5px;fill:#4c5769;font-variant-numeric:tabular-nums}
.small{font-size:10px}
.name{font-size:12.5px;font-weight:600;fill:currentColor}
.row{font-size:12.5px;font-weight:600}
.value{font-size:12px;font-variant-numeric:tabular-nums}
.start{text-anchor:start}.middle{text-anchor:middle}.end{text-anchor:end}
.grid{stroke:#e6eaf0;stroke-width:1}
.zero{stroke:#b9c1ce}
.tick,.base{stroke:#8a94a6;stroke-width:1}
.zone{fill:#5b6b85;fill-opacity:.1}
.inset{fill:#ffffff;stroke:#b9c1ce;stroke-width:1}
.reference{stroke:#1b2330;stroke-opacity:.7;stroke-width:1.3;stroke-dasharray:5 4}
.line{fill:none;stroke:currentColor;stroke-width:1.9;stroke-linejoin:round}
.thin{stroke-width:1.3}
.leader{fill:none;stroke:currentColor;stroke-width:1;stroke-opacity:.6}
.band{fill:currentColor;fill-opacity:.16}
.whisker{stroke:currentColor;stroke-width:2}
.mark{fill:currentColor;stroke:#ffffff;stroke-width:1;stroke-linejoin:round}
.run{fill:currentColor;fill-opacity:.55}
.s0{color:#0072b2}.s1{color:#d55e00}.s2{color:#009e73}.s3{color:#cc79a7}
.s4{color:#c8860a}.s5{color:#3a9cd4}.s6{color:#1b2330}.s7{color:#a39400}
.name.s1{color:#c25400}.name.s2{color:#00805d}.name.s3{color:#a84d80}
.name.s4{color:#8f6100}.name.s5{color:#2577a8}.name.s7{color:#756b00}
.line.s1{stroke-dasharray:8 3}.line.s2{stroke-dasharray:3 2.5}.line.s3{stroke-dasharray:9 3 2 3}
.line.s4{stroke-dasharray:14 4}.line.s5{stroke-dasharray:1.5 2.5}.line.s6{stroke-dasharray:9 3 2 3 2 3}.line.s7{stroke-dasharray:5 5}
@media (prefers-color-scheme:dark){
text{fill:#e6eaf2}
.page{fill:#11151c}
.soft,.axis{fill:#aab4c5}
.name{fill:currentColor}
.grid{stroke:#262e3b}
.zero{stroke:#4d586b}
.tick,.base{stroke:#6b7688}
.zone{fill:#aab8d4;fill-opacity:.12}
.inset{fill:#11151c;stroke:#4d586b}
.reference{stroke:#e6eaf2}
.band{fill-opacity:.2}
.mark{stroke:#11151c}
.s0,.name.s0{color:#4aa3e0}.s1,.name.s1{color:#f0743e}.s2,.name.s2{color:#2fc79b}.s3,.name.s3{color:#d78fb8}
.s4,.name.s4{color:#f2b134}.s5,.name.s5{color:#8ad0ff}.s6,.name.s6{color:#e6eaf2}.s7,.name.s7{color:#f0e442}
}
)";

}  // namespace cautious::report
