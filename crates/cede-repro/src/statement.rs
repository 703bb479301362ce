//! What a paper says, what was measured, and whether it holds.

use cede_plot::{Align, Cell, Table, Verdict};
use serde_json::{Value, json};

/// What was measured, and what came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// What was measured, with its spread.
    pub measured: String,
    /// Whether the criterion is met.
    pub verdict: Verdict,
}

impl Judgement {
    /// Met or not; open where what was measured is not a number.
    #[must_use]
    pub fn new(measured: impl Into<String>, holds: Option<bool>) -> Self {
        Self { measured: measured.into(), verdict: holds.map_or(Verdict::Open, Verdict::from) }
    }

    /// Nothing was measured that could decide it.
    #[must_use]
    pub fn open(why: impl Into<String>) -> Self {
        Self::new(why, None)
    }
}

/// Whether a condition on numbers holds; unknown where one of them is not a number.
#[must_use]
pub fn known(values: &[f64], holds: bool) -> Option<bool> {
    (!values.is_empty() && values.iter().all(|value| value.is_finite())).then_some(holds)
}

/// A statement that was published, and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Where it stands.
    pub place: &'static str,
    /// What it says.
    pub says: String,
    /// What must be true of the data for it to hold.
    pub criterion: String,
    /// What was measured and whether that meets the criterion.
    pub judgement: Judgement,
}

impl Statement {
    /// A statement.
    #[must_use]
    pub fn new(
        place: &'static str,
        says: impl Into<String>,
        criterion: impl Into<String>,
        judgement: Judgement,
    ) -> Self {
        Self { place, says: says.into(), criterion: criterion.into(), judgement }
    }

    /// Whether it holds.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.judgement.verdict
    }

    /// For programs.
    fn to_json(&self) -> Value {
        json!({
            "place": self.place,
            "says": self.says,
            "criterion": self.criterion,
            "measured": self.judgement.measured,
            "verdict": self.verdict().words(),
        })
    }
}

/// What was published, statement by statement.
#[derive(Clone, PartialEq, Debug)]
pub struct Statements(pub Vec<Statement>);

impl Statements {
    /// How many hold, do not hold, and are open.
    #[must_use]
    pub fn tally(&self) -> Tally {
        tally(self.0.iter().map(Statement::verdict))
    }

    /// As a table.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table =
            Table::new(["from", "says", "measured", "verdict", "criterion"]).align(3, Align::Left);
        for statement in &self.0 {
            table.push([
                Cell::from(statement.place),
                statement.says.clone().into(),
                statement.judgement.measured.clone().into(),
                statement.verdict().into(),
                statement.criterion.clone().into(),
            ]);
        }
        table
    }

    /// The same for a narrow screen: without criteria.
    #[must_use]
    pub fn short_table(&self) -> Table {
        let mut table = Table::new(["says", "measured", "verdict"]);
        for statement in &self.0 {
            table.push([
                statement.says.clone().into(),
                statement.judgement.measured.clone().into(),
                statement.verdict().into(),
            ]);
        }
        table
    }

    /// For programs.
    pub(super) fn to_json(&self) -> Value {
        self.0.iter().map(Statement::to_json).collect()
    }
}

/// How many hold, do not hold, and are open.
pub type Tally = (usize, usize, usize);

/// Counts verdicts.
pub(super) fn tally(verdicts: impl Iterator<Item = Verdict>) -> Tally {
    let verdicts: Vec<Verdict> = verdicts.collect();
    let count = |verdict| verdicts.iter().filter(|one| **one == verdict).count();
    (count(Verdict::Holds), count(Verdict::Fails), count(Verdict::Open))
}

/// A page's first paragraphs: what it is about, and how many of the statements, or what they are called, hold.
pub(super) fn lead(about: &str, what: &str, (hold, fail, open): Tally) -> String {
    let all = hold + fail + open;
    format!("{about}\n\nOf {all} {what} **{hold} hold**, **{fail} do not hold**, {open} are open.")
}
