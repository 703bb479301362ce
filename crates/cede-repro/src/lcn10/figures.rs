//! The figures: which points each needs, and what each shows.

use super::claim::Claim;
use super::plan::{FigureNumber, Plan, Point, Request};
use super::results::Results;
use super::simulators::{self, Compared};
use super::{arithmetic, background, fig1, fig2, fig3, fig4, fig5, fig6, others, sensitivity, statements};
use cede_plot::{Align, Cell, Figure, Table};

/// The points of a figure.
fn points(figure: FigureNumber, quick: bool) -> Vec<Point> {
    match figure {
        FigureNumber::Fig1 => fig1::points(),
        FigureNumber::Fig2 => fig2::points(quick),
        FigureNumber::Fig3 => fig3::points(quick),
        FigureNumber::Fig4 => fig4::points(quick),
        FigureNumber::Fig5 => fig5::points(quick),
        FigureNumber::Fig6 => fig6::points(quick),
    }
}

/// Lists the points of a request and the runs that they need.
#[must_use]
pub fn plan(request: &Request) -> Plan {
    let mut points: Vec<Point> =
        request.figures().into_iter().flat_map(|figure| points(figure, request.quick)).collect();
    if request.with_sensitivity() {
        points.extend(sensitivity::points(request.quick));
        points.extend(background::points(request.quick));
        points.extend(arithmetic::points(request.quick));
        points.extend(others::points());
    }
    Plan::of(request.clone(), points)
}

/// A figure of the paper: pictures, claims, and the comparison.
#[derive(Clone, Debug)]
pub struct FigureReport {
    /// Which one.
    pub figure: FigureNumber,
    /// Its pictures, each with the name of its files.
    pub pictures: Vec<(&'static str, Figure)>,
    /// The paper's claims about it.
    pub claims: Vec<Claim>,
    /// Ours beside ns-2 and ns-3.
    pub comparison: Table,
}

impl FigureReport {
    pub(super) fn of(figure: FigureNumber, results: &Results) -> Self {
        let (pictures, claims, compared): (Vec<(&str, Figure)>, Vec<Claim>, &[Compared]) = match figure {
            FigureNumber::Fig1 => {
                let pictures =
                    vec![("fig1", fig1::draw(results)), ("fig1-others", fig1::draw_others(results))];
                let claims = [statements::definitions(), fig1::claims(results)].concat();
                (pictures, claims, fig1::COMPARED)
            }
            FigureNumber::Fig2 => {
                let left = ("fig2-target", fig2::draw_targets(results));
                let right = ("fig2-gain", fig2::draw_gains(results));
                (vec![left, right], fig2::claims(results), fig2::COMPARED)
            }
            FigureNumber::Fig3 => {
                (vec![("fig3", fig3::draw(results))], fig3::claims(results), fig3::COMPARED)
            }
            FigureNumber::Fig4 => {
                (vec![("fig4", fig4::draw(results))], fig4::claims(results), fig4::COMPARED)
            }
            FigureNumber::Fig5 => {
                (vec![("fig5", fig5::draw(results))], fig5::claims(results), fig5::COMPARED)
            }
            FigureNumber::Fig6 => {
                (vec![("fig6", fig6::draw(results))], fig6::claims(results), fig6::COMPARED)
            }
        };
        Self { figure, pictures, claims, comparison: simulators::table(results, compared) }
    }

    /// The claims as a table.
    #[must_use]
    pub fn claims_table(&self) -> Table {
        let mut table =
            Table::new(["paper", "says", "measured", "verdict", "criterion", "note"]).align(3, Align::Left);
        for claim in &self.claims {
            table.push([
                Cell::from(claim.place),
                claim.says.into(),
                claim.judgement.measured.clone().into(),
                claim.judgement.verdict.into(),
                claim.criterion.into(),
                claim.note.into(),
            ]);
        }
        table
    }

    /// The same for a narrow screen: without criteria and notes.
    #[must_use]
    pub fn short_table(&self) -> Table {
        let mut table = Table::new(["paper", "says", "measured", "verdict"]);
        for claim in &self.claims {
            let measured = claim.judgement.measured.clone();
            table.push([
                claim.place.into(),
                claim.says.into(),
                measured.into(),
                claim.judgement.verdict.into(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::setting::Setting;
    use super::*;

    fn request(figures: &[FigureNumber], quick: bool) -> Request {
        Request { figures: figures.to_vec(), sensitivity: false, quick }
    }

    #[test]
    fn shared_runs_are_planned_once() {
        let both = plan(&request(&[FigureNumber::Fig2, FigureNumber::Fig4], true));
        let needed: usize = both.places.iter().map(Vec::len).sum();
        assert!(both.runs.len() < needed, "{} of {needed}", both.runs.len());
        assert!(both.places.iter().flatten().all(|&place| place < both.runs.len()));
    }

    #[test]
    fn a_quick_plan_is_a_part_of_the_full_one() {
        let texts = |quick| -> std::collections::BTreeSet<String> {
            plan(&request(&FigureNumber::ALL, quick)).runs.iter().map(Setting::to_toml).collect()
        };
        let (quick, full) = (texts(true), texts(false));
        assert!(quick.len() * 3 < full.len(), "{} {}", quick.len(), full.len());
        assert!(quick.is_subset(&full));
    }

    #[test]
    fn every_run_is_a_valid_scenario() {
        let request = Request { figures: FigureNumber::ALL.to_vec(), sensitivity: true, quick: true };
        for run in &plan(&request).runs {
            let _ = run.scenario();
        }
    }
}
