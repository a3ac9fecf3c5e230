// Colours and type of figures of the plane and of surfaces. The series have the colours of chart_style.h and differ in their
// markers too. No custom properties: some SVG readers do not know them.
#pragma once

#include <string_view>

namespace cautious::report {

// Sizes that the layout has to know.
inline constexpr double kPathNameSize = 12.5, kPlaneNoteSize = 11.5, kPlaneSoftSize = 12.5;

inline constexpr std::string_view kPlaneStyle = R"(
text{font-family:Inter,"Helvetica Neue",Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#1b2330}
.page{fill:#ffffff}
.plot{fill:#fbfcfe}
.hill{fill:#24447a;fill-opacity:.027;fill-rule:evenodd}
.frame{fill:none;stroke:#8a94a6;stroke-width:1}
.tick{stroke:#8a94a6;stroke-width:1}
.title{font-size:19px;font-weight:600}
.panel{font-size:14px;font-weight:600}
.formula{font-size:13px;fill:#4c5769}
.soft{font-size:12.5px;fill:#4c5769}
.axis{font-size:11.5px;fill:#4c5769;font-variant-numeric:tabular-nums}
.note{font-size:11.5px;fill:#4c5769;paint-order:stroke;stroke:#fbfcfe;stroke-opacity:.75;stroke-width:3px;stroke-linejoin:round}
.name{font-size:12.5px;font-weight:600;fill:currentColor;paint-order:stroke;stroke:#fbfcfe;stroke-opacity:.75;stroke-width:3.5px;stroke-linejoin:round}
.head{font-size:11px;fill:#4c5769}
.cell{font-size:11.5px;font-variant-numeric:tabular-nums}
.rule{stroke:#c9d0dc;stroke-width:1}
.start{text-anchor:start}.middle{text-anchor:middle}.end{text-anchor:end}
.box{fill:#d55e00;fill-opacity:.13;stroke:#d55e00;stroke-opacity:.55;stroke-width:1}
.curve,.path,.casing{fill:none;stroke-linejoin:round;stroke-linecap:round}
.thin{stroke:#1b2330;stroke-opacity:.75;stroke-width:1.2;stroke-dasharray:5 4;stroke-linecap:butt}
.band{stroke:#cc79a7;stroke-opacity:.65;stroke-width:9}
.dotted{stroke:#cc79a7;stroke-opacity:.4;stroke-width:4.5;stroke-dasharray:1 7}
.ring{fill:none;stroke-dasharray:none}
.thin.ring{stroke-width:1.6}.band.ring{stroke-width:4;stroke-opacity:.8}.dotted.ring{stroke-width:3}
.path{stroke:currentColor;stroke-width:2}
.casing{stroke:#fbfcfe;stroke-opacity:.6;stroke-width:4}
.mark{fill:currentColor;stroke:#ffffff;stroke-width:1.2;stroke-linejoin:round}
.origin{fill:#ffffff;stroke:#1b2330;stroke-width:1.8}
.s0{color:#0072b2}.s1{color:#d55e00}.s2{color:#009e73}.s3{color:#cc79a7}
.s4{color:#c8860a}.s5{color:#3a9cd4}.s6{color:#1b2330}.s7{color:#a39400}
.name.s1{color:#c25400}.name.s2{color:#00805d}.name.s3{color:#a84d80}
.name.s4{color:#8f6100}.name.s5{color:#2577a8}.name.s7{color:#756b00}
@media (prefers-color-scheme:dark){
text{fill:#e6eaf2}
.page{fill:#11151c}
.plot{fill:#161b24}
.hill{fill:#9db7ff;fill-opacity:.028}
.frame,.tick{stroke:#6b7688}
.formula,.soft,.axis,.note,.head{fill:#aab4c5}
.name{fill:currentColor}
.note,.name,.casing{stroke:#161b24}
.rule{stroke:#333c4b}
.box{fill:#f08c3c;fill-opacity:.14;stroke:#f08c3c}
.thin{stroke:#e6eaf2}
.band{stroke:#d78fb8;stroke-opacity:.6}
.dotted{stroke:#d78fb8;stroke-opacity:.5}
.mark{stroke:#11151c}
.origin{fill:#11151c;stroke:#e6eaf2}
.s0,.name.s0{color:#4aa3e0}.s1,.name.s1{color:#f0743e}.s2,.name.s2{color:#2fc79b}.s3,.name.s3{color:#d78fb8}
.s4,.name.s4{color:#f2b134}.s5,.name.s5{color:#8ad0ff}.s6,.name.s6{color:#e6eaf2}.s7,.name.s7{color:#f0e442}
}
)";

}  // namespace cautious::report
