//! The goodput plateau, and that simulations are deterministic.

use tidegate_gateway::engine::batch::BatchConfig;
use tidegate_gateway::simulate::{Point, Setup, WayIn, Workload, sweep};
use tidegate_policy::file;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;

const LOADS: [f64; 5] = [0.2, 0.6, 1.0, 2.0, 4.0];

fn policy() -> Settings {
    file::parse(file::DEFAULT).expect("the default file")
}

fn swept(way_in: &WayIn) -> Vec<Point> {
    let setup = Setup::new(BatchConfig::default(), policy());
    sweep(&setup, way_in, &Workload::default(), &LOADS, 1, |point| {
        let all = point.report.in_all();
        eprintln!(
            "load {:.1} rate {:.1} arrived {} ended {} kept {} goodput {:.2} refused {} lost {} mem {:.2} ttft {:?}",
            point.load,
            point.rate,
            all.arrived,
            all.ended,
            all.kept,
            all.goodput(),
            all.refused_in_all(),
            point.report.lost_tokens,
            point.report.most_memory,
            all.first_token_ms()
        );
        for class in &point.report.classes {
            let reasons: Vec<_> = tidegate_policy::reason::Reason::ALL
                .iter()
                .map(|r| (r.name(), class.refused(*r)))
                .filter(|r| r.1 > 0)
                .collect();
            eprintln!(
                "   {} arrived {} kept {} att {:?} {:?} {:?}",
                class.name,
                class.arrived,
                class.kept,
                class.attainment(),
                class.first_token_ms(),
                reasons
            );
        }
    })
}

#[test]
fn look() {
    for way_in in [
        WayIn::Open,
        WayIn::Gate(tidegate::Settings::default()),
        WayIn::Policy(
            Box::new(policy()),
            tidegate::Settings::default(),
            Mode::Enforce,
        ),
    ] {
        swept(&way_in);
    }
}
