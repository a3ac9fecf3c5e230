// Colours and type of a plane figure. The series use the colours of Okabe and Ito, which colour-blind readers can tell apart,
// and differ in their markers too. No custom properties: some SVG readers do not know them.
#pragma once

#include <string_view>

namespace cautious {

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
.soft{font-size:12px;fill:#4c5769}
.axis{font-size:11.5px;fill:#4c5769}
.note{font-size:11.5px;fill:#4c5769;paint-order:stroke;stroke:#fbfcfe;stroke-opacity:.75;stroke-width:3px;stroke-linejoin:round}
.name{font-size:12.5px;font-weight:600;paint-order:stroke;stroke:#fbfcfe;stroke-opacity:.75;stroke-width:3.5px;stroke-linejoin:round}
.head{font-size:11px;fill:#4c5769}
.cell{font-size:11.5px;font-variant-numeric:tabular-nums}
.rule{stroke:#c9d0dc;stroke-width:1}
.start{text-anchor:start}.middle{text-anchor:middle}.end{text-anchor:end}
.box{fill:#d55e00;fill-opacity:.13;stroke:#d55e00;stroke-opacity:.55;stroke-width:1}
.thin{fill:none;stroke:#1b2330;stroke-opacity:.75;stroke-width:1.2;stroke-dasharray:5 4}
.band{fill:none;stroke:#cc79a7;stroke-opacity:.65;stroke-width:9;stroke-linecap:round}
.dotted{fill:none;stroke:#cc79a7;stroke-opacity:.4;stroke-width:4.5;stroke-dasharray:1 7;stroke-linecap:round}
.path{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.mark{stroke:#ffffff;stroke-width:1.2}
.origin{fill:#ffffff;stroke:#1b2330;stroke-width:1.8}
.path.disc{stroke:#0072b2}.mark.disc,.name.disc{fill:#0072b2}
.path.square{stroke:#d55e00}.mark.square,.name.square{fill:#c25400}
.path.diamond{stroke:#009e73}.mark.diamond,.name.diamond{fill:#00805d}
@media (prefers-color-scheme:dark){
text{fill:#e6eaf2}
.page{fill:#11151c}
.plot{fill:#161b24}
.hill{fill:#9db7ff;fill-opacity:.028}
.frame,.tick{stroke:#6b7688}
.formula,.soft,.axis,.note,.head{fill:#aab4c5}
.note,.name{stroke:#161b24}
.rule{stroke:#333c4b}
.box{fill:#f08c3c;fill-opacity:.14;stroke:#f08c3c}
.thin{stroke:#e6eaf2}
.band{stroke:#d78fb8;stroke-opacity:.6}
.dotted{stroke:#d78fb8;stroke-opacity:.5}
.mark{stroke:#11151c}
.origin{fill:#11151c;stroke:#e6eaf2}
.path.disc{stroke:#56b4e9}.mark.disc,.name.disc{fill:#56b4e9}
.path.square{stroke:#f08c3c}.mark.square,.name.square{fill:#f59a52}
.path.diamond{stroke:#2fc79b}.mark.diamond,.name.diamond{fill:#3fd3a8}
}
)";

}  // namespace cautious
