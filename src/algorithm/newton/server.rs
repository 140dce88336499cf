//! The server of Newton factors: it keeps every client's site, so that clients keep nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use fedstein_models::Model;

use super::names::{CURVATURE, GRADIENT};
use super::plan::{Moments, Plan};
use super::site_sum::SiteSum;
use crate::algorithm::keys::LocalConfig;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::prior_score;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientId, Message, PARTICLES, Question, Reply, ServerHalf, Setup, message_of, particles_of};
use crate::stein::{OptimizerState, Score, Svgd};

/// The share of a visit in the running mean of second moments.
const NEW_MOMENTS: f64 = 0.1;

/// The names under which the server keeps its state.
const TRANSPORT: &str = "transport";
const SITES: &str = "sites";

/// The factor of one client: ∇ log t_k at Θ is G − b·(U_now − U).
struct Site {
    /// G, the gradient of the client's log-likelihood at the particles that it returned, `[N, d]`.
    gradient: Particles,
    /// U when the particles were those, `[N, d]`.
    transport: Particles,
    /// b, `[N, m]`.
    curvature: Particles,
}

/// The content of a reply.
struct Visit {
    client: ClientId,
    moved: Particles,
    gradient: Particles,
    curvature: Particles,
    moments: Moments,
}

/// Θ, the sites, and their sums.
pub(super) struct Server {
    /// The keys that say how many steps a visit has.
    local: LocalConfig,
    scale: f64,
    plan: Plan,
    model: Arc<dyn Model>,
    svgd: Svgd,
    /// The factor of its step size in the round.
    step_factor: f64,
    session: Session,
    /// The mean number of rows of a client, whose steps the server takes.
    mean_rows: usize,
    theta: Particles,
    /// U: the sum of the displacements of Θ, each multiplied by the second moments of its time.
    transport: Particles,
    /// A and Λ, the sums of the sites' scores at Θ and of their curvatures; `None` before the first visit.
    sums: Option<(Particles, Particles)>,
    moments: Option<Moments>,
    sites: BTreeMap<ClientId, Site>,
}

impl Server {
    pub fn new(local: LocalConfig, scale: f64, plan: Plan, setup: Setup) -> Self {
        let Setup { model, roster, svgd, session, initial, .. } = setup;
        let transport = initial.map(|block| block.zeros_like());
        Self {
            local,
            scale,
            plan,
            model,
            svgd,
            step_factor: 1.0,
            session,
            mean_rows: roster.iter().sum::<usize>().div_ceil(roster.len().max(1)),
            theta: initial,
            transport,
            sums: None,
            moments: None,
            sites: BTreeMap::new(),
        }
    }

    /// What a site contributes to A now: G − b·(U_now − U).
    fn score_of(&self, site: &Site) -> Particles {
        let since = self.transport.clone().zip(site.transport.clone(), |now, then| now - then);
        let change = self.plan.product(&site.curvature, since);
        site.gradient.clone().zip(change, |gradient, change| gradient - change)
    }

    /// The sums of the sites of all clients but these; `None` where no other client has a site.
    fn cavity(&self, without: &[ClientId]) -> Option<(Particles, Particles)> {
        if self.sites.keys().all(|client| without.contains(client)) {
            return None;
        }
        let (mut score, mut curvature) = self.sums.clone()?;
        for site in without.iter().filter_map(|client| self.sites.get(client)) {
            score = score.zip(self.score_of(site), |sum, own| sum - own);
            curvature = self.plan.clamped(curvature.zip(site.curvature.clone(), |sum, own| sum - own));
        }
        Some((score, curvature))
    }

    fn read(&self, reply: &Reply) -> Result<Visit, RunError> {
        let (message, session) = (&reply.message, &self.session);
        let curvature = Particles::from_array(message.array(CURVATURE)?, &self.plan.curvature, session)?;
        Ok(Visit {
            client: reply.client,
            moved: particles_of(message, &self.theta, session)?,
            gradient: Particles::from_array(message.array(GRADIENT)?, self.theta.layout(), session)?,
            curvature,
            moments: self.plan.moments_in(message, session)?,
        })
    }

    /// Moves Θ to `to` with the sites where they are: U and A follow.
    fn follow(&mut self, to: Particles) {
        let moved = to.clone().zip(self.theta.clone(), |to, from| to - from);
        let moved = self.plan.transported(moved, self.moments.as_ref());
        if let Some((score, curvature)) = self.sums.take() {
            let change = self.plan.product(&curvature, moved.clone());
            self.sums = Some((score.zip(change, |score, change| score - change), curvature));
        }
        self.transport = self.transport.clone().zip(moved, |sum, moved| sum + moved);
        self.theta = to;
    }

    /// Puts the site of a visit in the place of the client's last one, given that Θ is the mean of what came back.
    fn add(&mut self, visit: Visit, alone: bool) {
        let moments = self.moments.as_ref().expect("the moments of the round have been taken over");
        let curvature = self.plan.scaled(visit.curvature, moments, self.scale);
        let transport = match alone {
            true => self.transport.clone(),
            false => {
                let back = self.theta.clone().zip(visit.moved, |mean, moved| mean - moved);
                let back = self.plan.transported(back, self.moments.as_ref());
                self.transport.clone().zip(back, |now, back| now - back)
            }
        };
        let site = Site { gradient: visit.gradient, transport, curvature };
        let score = if alone { site.gradient.clone() } else { self.score_of(&site) };
        self.sums = Some(match self.sums.take() {
            None => (score, site.curvature.clone()),
            Some((sum, curvature)) => {
                (sum.zip(score, |sum, own| sum + own), curvature.zip(site.curvature.clone(), |sum, own| sum + own))
            }
        });
        self.sites.insert(visit.client, site);
    }

    /// Moves Θ by L steps of SVGD on p0·Π_k t_k: what the clients of a round know together.
    fn move_together(&mut self) -> Result<(), RunError> {
        let (Some((score, curvature)), Some(moments)) = (&self.sums, &self.moments) else { return Ok(()) };
        let (model, from) = (&*self.model, self.theta.clone());
        let sites = SiteSum::new(&self.plan, from.clone(), score.clone(), curvature, moments);
        let joint =
            |at: &Particles| -> Result<Score, RunError> { Ok(prior_score(model, at, 1.0).plus(sites.score(at))) };
        let steps = self.local.steps(self.mean_rows);
        let to = self.svgd.scaled(self.step_factor).run(from, steps, &mut OptimizerState::default(), joint, |_| {})?;
        self.follow(to);
        Ok(())
    }
}

impl ServerHalf for Server {
    fn set_step_factor(&mut self, factor: f64) {
        self.step_factor = factor;
    }

    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        message_of(&self.theta)
    }

    /// Θ and the cavity: the sums of the other clients' sites, and the second moments with which they act.
    fn configure_for(&self, _round: usize, client: ClientId) -> Result<Option<Message>, RunError> {
        let message = message_of(&self.theta)?;
        let Some((score, curvature)) = self.cavity(&[client]) else { return Ok(Some(message)) };
        let message = message.with_array(GRADIENT, score.to_array()?).with_array(CURVATURE, curvature.to_array()?);
        Ok(Some(match &self.moments {
            Some(moments) => moments.add_to(message)?,
            None => message,
        }))
    }

    /// Of a discrepancy Θ and A⁻, which is the score of the cavity there; of a client's own score Θ alone.
    fn question_for(&self, _round: usize, client: ClientId, question: &Question) -> Result<Option<Message>, RunError> {
        let cavity = match question {
            Question::Discrepancy { .. } => self.cavity(&[client]),
            Question::LikelihoodScore { .. } => None,
        };
        let Some((score, _)) = cavity else { return Ok(None) };
        Ok(Some(message_of(&self.theta)?.with_array(GRADIENT, score.to_array()?)))
    }

    fn check(&self, reply: &Reply) -> Result<(), String> {
        self.plan.check_shapes(&reply.message, &self.theta)?;
        self.plan.check(&reply.message)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let visits = replies.iter().map(|reply| self.read(reply)).collect::<Result<Vec<_>, RunError>>()?;
        let clients: Vec<ClientId> = visits.iter().map(|visit| visit.client).collect();
        let alone = visits.len() == 1;
        let moved: Vec<Particles> = visits.iter().map(|visit| visit.moved.clone()).collect();
        let Some(mean) = Particles::mean_of(&moved) else { return Ok(()) };
        self.sums = self.cavity(&clients);
        self.follow(mean);
        let sent = mean_moments(visits.iter().map(|visit| visit.moments.clone()));
        self.moments = Some(match self.moments.take() {
            None => sent,
            Some(old) => old.towards(sent, 1.0 - (1.0 - NEW_MOMENTS).powi(clients.len() as i32)),
        });
        visits.into_iter().for_each(|visit| self.add(visit, alone));
        if alone { Ok(()) } else { self.move_together() }
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn assumes_uncorrelated_features(&self) -> bool {
        self.plan.is_diagonal_in_features()
    }

    fn state_bytes(&self) -> u64 {
        let site = |site: &Site| site.gradient.bytes() + site.transport.bytes() + site.curvature.bytes();
        let sums = self.sums.as_ref().map_or(0, |(score, curvature)| score.bytes() + curvature.bytes());
        let moments = self.moments.as_ref().map_or(0, Moments::bytes);
        self.theta.bytes() + self.transport.bytes() + sums + moments + self.sites.values().map(site).sum::<u64>()
    }

    fn save(&self) -> Result<State, RunError> {
        let state = State::default().with_particles(PARTICLES, &self.theta)?;
        let mut state = state.with_particles(TRANSPORT, &self.transport)?;
        state = state.with_counts(SITES, self.sites.keys().copied());
        if let Some((score, curvature)) = &self.sums {
            state = state.with_particles(GRADIENT, score)?.with_particles(CURVATURE, curvature)?;
        }
        for (name, of) in self.moments.iter().flat_map(Moments::named) {
            state = state.with_particles(name, of)?;
        }
        for (client, site) in &self.sites {
            let part = State::default().with_particles(GRADIENT, &site.gradient)?;
            let part = part.with_particles(TRANSPORT, &site.transport)?.with_particles(CURVATURE, &site.curvature)?;
            state = state.with_part(&format!("site_{client}"), part);
        }
        Ok(state)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        let session = &self.session;
        let (layout, form) = (self.theta.layout().clone(), self.plan.curvature.clone());
        let theta = state.particles(PARTICLES, &layout, session)?;
        let transport = state.particles(TRANSPORT, &layout, session)?;
        let clients = state.counts(SITES)?;
        let sums = match clients.is_empty() {
            true => None,
            false => Some((state.particles(GRADIENT, &layout, session)?, state.particles(CURVATURE, &form, session)?)),
        };
        let moments = match clients.is_empty() {
            true => None,
            false => Some(self.plan.saved_moments(state, session)?),
        };
        let mut sites = BTreeMap::new();
        for client in clients {
            let part = state.part(&format!("site_{client}"));
            let site = Site {
                gradient: part.particles(GRADIENT, &layout, session)?,
                transport: part.particles(TRANSPORT, &layout, session)?,
                curvature: part.particles(CURVATURE, &form, session)?,
            };
            sites.insert(client, site);
        }
        (self.theta, self.transport, self.sums, self.moments, self.sites) = (theta, transport, sums, moments, sites);
        Ok(())
    }
}

/// The mean of the second moments of several clients.
fn mean_moments(of: impl Iterator<Item = Moments>) -> Moments {
    let (shared, own): (Vec<_>, Vec<_>) = of.map(|Moments { shared, own }| (shared, own)).unzip();
    let all = |sets: Vec<Option<Particles>>| Particles::mean_of(&sets.into_iter().flatten().collect::<Vec<_>>());
    Moments { shared: all(shared), own: all(own) }
}
