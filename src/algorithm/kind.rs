//! The interface of the algorithms: what each one says of itself, and how it is built.

use std::fmt;

use fedstein_schema::Kind;
pub use fedstein_schema::UnusedKeys;

use crate::density::KdeBandwidth;
use crate::error::RunError;
use crate::protocol::{Halves, Setup};

/// A federated algorithm: its configuration, what it can do, and how its two halves are built.
pub trait Algorithm: fmt::Debug + Send + Sync {
    /// The value of `kind`, a sentence that describes the algorithm, and its keys.
    fn kind(&self) -> Kind;

    /// The capabilities and the requirements of the algorithm.
    fn capabilities(&self) -> Capabilities;

    /// The number of particles N; 1 for a method with one parameter vector.
    fn particles(&self) -> usize {
        1
    }

    /// The temperature α of its target; 1 for a method without a temperature.
    fn temperature(&self) -> f64 {
        1.0
    }

    /// The bandwidth λ of the kernel density estimate of its particles; `None` for a method without one.
    fn kde_bandwidth(&self) -> Option<KdeBandwidth> {
        None
    }

    /// Checks the combinations of keys; each key by itself has been checked when the config was read.
    ///
    /// # Errors
    /// Two keys contradict each other; the message names both and the values that would be right.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The number of clients in a round, out of `clients`; `None` for an algorithm that leaves it to the schedule.
    fn clients_per_round(&self, _clients: usize) -> Option<usize> {
        None
    }

    /// A sentence for the user: the effect of `algorithm.kde_bandwidth` where one centre has all the weight of a
    /// density.
    fn one_hot_advice(&self) -> &'static str {
        HELD
    }

    /// The cost of a visit to a client with so many training rows. A site refuses a run whose cost is beyond its `[limits]`,
    /// and one of a method that does not say it.
    fn visit_cost(&self, _rows: usize) -> VisitCost {
        VisitCost { steps: usize::MAX, draws: usize::MAX }
    }

    /// How many numbers a client holds in memory during a visit besides its rows and its particles, known before they are
    /// computed: a site refuses a run in which they are more than its `[limits]`.
    fn held_numbers(&self, _setup: &Setup) -> usize {
        0
    }

    /// The keys that have no effect, because of what others say.
    fn unused_keys(&self) -> Vec<UnusedKeys> {
        Vec::new()
    }

    /// Builds the server half and the client halves.
    ///
    /// # Errors
    /// The algorithm cannot work on this model or with these clients.
    fn build(&self, setup: Setup) -> Result<Halves, RunError>;
}

/// The largest cost of a visit to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitCost {
    /// The number of steps. Where a step has steps of its own, these count.
    pub steps: usize,
    /// The number of draws of all parameters that a step holds in memory; 0 for a method that draws none.
    pub draws: usize,
}

/// The capabilities and the requirements of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// All rows are in one place: there is one client with any partition.
    pub centralised: bool,
    /// Clients predict with parameters of their own.
    pub personal: bool,
    /// With `evaluation.personal` a client predicts with what it uploaded last.
    pub keeps_upload: bool,
    /// The published parameters have a part that no client trains, such as a head that each has for itself: their scores say
    /// nothing of the method.
    pub untrained_part: bool,
    /// Server and clients send each other no parameters: every client is alone.
    pub sends_nothing: bool,
    /// The model's prior is a part of the target. The others have a prior of their own, or none.
    pub model_prior: bool,
    /// It starts at parameters of its own, and not at the model's initial particles.
    pub own_start: bool,
    /// Clients have a tilted density, whose score the client selection can request.
    pub tilted: bool,
    /// The algorithm is defined for one client per round.
    pub one_client_per_round: bool,
    /// The algorithm itself sets the number of clients in a round; see [`Algorithm::clients_per_round`].
    pub chooses_clients: bool,
    /// The algorithm's formulas hold for plain gradient steps only.
    pub plain_gradient_steps: bool,
    /// Its steps are those of `[optimizer]`, with the step size of each round (`[lr_schedule]`).
    pub scheduled_steps: bool,
    /// Its clients train on the model's likelihood, in which rows may count differently (`data.class_weights`).
    pub weighted_rows: bool,
    /// It predicts classes alone.
    pub classifies: bool,
    /// Its particles interact through matrices `[N, N]`, such as that of `[kernel]`.
    pub pairs: bool,
    /// Messages hold natural parameters of Gaussians: their differences cancel, and rounded to 16 bits they need not be a
    /// density.
    pub natural_parameters: bool,
    /// The method needs the curvature of the clients' likelihoods ([`Model::row_curvature`]).
    ///
    /// [`Model::row_curvature`]: crate::models::Model::row_curvature
    pub curvature: bool,
    /// How the replies of a round relate to each other.
    pub replies: Replies,
    /// Why a reply must arrive as it was sent; `None` where the server may shorten its change.
    pub unclipped: Option<&'static str>,
    /// The arrays of a reply that hold changes, and not new values of the arrays sent under the same names.
    pub changes: &'static [&'static str],
    /// Those of them that are sums over the client's rows.
    pub row_sums: &'static [&'static str],
    /// The names of the numbers of the server, or of all replies, whose mean is then taken, that are columns of `rounds.csv`.
    pub columns: &'static [&'static str],
}

impl Capabilities {
    /// A method whose clients update the arrays that they receive, and whose server averages their replies.
    pub const FEDERATED: Self = Self {
        centralised: false,
        personal: false,
        keeps_upload: false,
        untrained_part: false,
        sends_nothing: false,
        model_prior: false,
        own_start: false,
        tilted: false,
        one_client_per_round: false,
        chooses_clients: false,
        plain_gradient_steps: false,
        scheduled_steps: true,
        weighted_rows: true,
        classifies: false,
        pairs: true,
        natural_parameters: false,
        curvature: false,
        replies: Replies::Estimates,
        unclipped: None,
        changes: &[],
        row_sums: &[],
        columns: &[],
    };
}

impl Capabilities {
    /// A method with all rows in one place, whose target has the model's prior.
    pub const CENTRALISED: Self = Self { centralised: true, model_prior: true, ..Self::FEDERATED };
}

/// How the replies of a round relate to each other, which decides which robust rules are defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// Estimates of one quantity, of which coordinate-wise medians and trimmed means are estimates too.
    Estimates,
    /// Estimates of one quantity, for which the algorithm's server has robust rules of its own.
    OwnRule,
    /// Not estimates of one quantity, for the reason given.
    Different(&'static str),
}

/// The effect of λ where one centre has all the weight of a density that represents the other clients.
const HELD: &str = "algorithm.kde_bandwidth then says how strongly Θ is held where other clients moved it; a smaller one forgets less \
     and learns more slowly";
/// The reason why no robust rule is defined where one client's reply replaces Θ.
pub(super) const REPLACES: &str = "one client a round replaces the global particles";
/// The reason why no robust rule is defined where every client sends its factor.
pub(super) const ONE_FACTOR_EACH: &str = "every reply is the factor of other rows, and the server multiplies them";
