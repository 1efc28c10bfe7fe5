//! The mishaps: a shuffled deck of them, played with pauses of chance, each undone after its time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::watch;

use crate::fleet::{Fleet, REPLICAS};
use crate::random::Random;
use crate::report::progress;
use crate::servers::Shutdown;

/// Longer than a lease.
const SHORTEST_FREEZE: Duration = Duration::from_millis(3500);
const LONGEST_FREEZE: Duration = Duration::from_secs(6);
/// Longer than the lease of a command.
const LONGEST_FREEZE_OF_WORKER: Duration = Duration::from_secs(20);
const LONGEST_ABSENCE: Duration = Duration::from_millis(1500);
const LONGEST_STALL: Duration = Duration::from_secs(5);

/// Something that can befall replicas and servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mishap {
    /// A replica is killed, and started again a little later.
    Kill,
    /// A replica stands still beyond its lease, and continues.
    Freeze,
    /// A replica is asked to end, and started again.
    Restart,
    /// PostgreSQL drops its clients and starts again.
    PostgresRestart,
    /// PostgreSQL drops everything and recovers.
    PostgresCrash,
    /// Redis is away for a time, and empty afterwards.
    RedisAway,
    /// Redis is emptied.
    RedisEmptied,
    /// A replica's connections to PostgreSQL are reset.
    PostgresCut,
    /// A replica's connections to PostgreSQL go silent for good, without being closed.
    PostgresSilence,
    /// A replica's connections to Redis are reset.
    RedisCut,
    /// Nothing passes between a replica and PostgreSQL for a time.
    PostgresStall,
    /// Nothing passes between a replica and Redis for a time.
    RedisStall,
    /// The worker for commands is killed, and started again a little later.
    WorkerKill,
    /// The worker for commands stands still, perhaps beyond its leases, and continues.
    WorkerFreeze,
    /// The worker for commands is asked to end, and started again.
    WorkerRestart,
    /// The worker's connections to PostgreSQL are reset.
    WorkerCut,
}

/// How many of each happened.
pub(crate) type Counts = BTreeMap<Mishap, u64>;

/// The action that ends a mishap.
#[derive(Debug, Clone, Copy)]
enum Undo {
    Start(usize),
    Thaw(usize),
    FreePostgres(usize),
    FreeRedis(usize),
    StartRedis,
    StartWorker,
    ThawWorker,
}

/// Lists the mishaps of a suite with so many kills, in the order of a seed.
pub(crate) fn deck(kills: u64, random: &mut Random) -> Vec<Mishap> {
    let share = |part: u64| kills.div_ceil(part);
    let counts = [
        (Mishap::Kill, kills),
        (Mishap::Freeze, share(5)),
        (Mishap::Restart, share(10)),
        (Mishap::PostgresRestart, share(20)),
        (Mishap::PostgresCrash, share(20)),
        (Mishap::RedisAway, share(20)),
        (Mishap::RedisEmptied, share(20)),
        (Mishap::PostgresCut, share(6)),
        (Mishap::PostgresSilence, share(8)),
        (Mishap::RedisCut, share(8)),
        (Mishap::PostgresStall, share(12)),
        (Mishap::RedisStall, share(16)),
        (Mishap::WorkerKill, share(3)),
        (Mishap::WorkerFreeze, share(8)),
        (Mishap::WorkerRestart, share(8)),
        (Mishap::WorkerCut, share(8)),
    ];
    let mut deck: Vec<Mishap> = counts
        .into_iter()
        .flat_map(|(mishap, count)| (0..count).map(move |_| mishap))
        .collect();
    for position in (1..deck.len()).rev() {
        deck.swap(position, random.index(position + 1));
    }
    deck
}

/// Plays the deck and undoes everything. `played` follows how far it is.
pub(crate) async fn play(
    fleet: &mut Fleet,
    deck: &[Mishap],
    pause: Duration,
    random: &mut Random,
    played: &watch::Sender<usize>,
) -> Result<Counts> {
    let mut counts = Counts::new();
    let mut undos: Vec<(Instant, Undo)> = Vec::new();
    for (number, mishap) in deck.iter().enumerate() {
        let next = Instant::now() + random.between(Duration::ZERO, pause * 2);
        undo_until(fleet, &mut undos, next).await?;
        // One that found no database at its start has ended.
        fleet.worker.program.revive()?;
        progress(&format!("{} of {}: {mishap:?}", number + 1, deck.len()));
        let undo = befall(fleet, *mishap, random).await?;
        undos.extend(undo.map(|(after, undo)| (Instant::now() + after, undo)));
        *counts.entry(*mishap).or_default() += 1;
        played.send_replace(number + 1);
    }
    let last = undos.iter().map(|(at, _)| *at).max();
    undo_until(fleet, &mut undos, last.unwrap_or_else(Instant::now)).await?;
    Ok(counts)
}

/// Waits until the time has come, and undoes what is due by then.
async fn undo_until(fleet: &mut Fleet, undos: &mut Vec<(Instant, Undo)>, until: Instant) -> Result<()> {
    undos.sort_by_key(|(at, _)| *at);
    let due = undos.partition_point(|(at, _)| *at <= until);
    for (at, undo) in undos.drain(..due) {
        tokio::time::sleep_until(at.into()).await;
        match undo {
            Undo::Start(replica) => fleet.replicas[replica].program.start()?,
            Undo::Thaw(replica) => fleet.replicas[replica].program.freeze(false)?,
            Undo::FreePostgres(replica) => fleet.replicas[replica].to_postgres.stall(false),
            Undo::FreeRedis(replica) => fleet.replicas[replica].to_redis.stall(false),
            Undo::StartRedis => fleet.redis.start().await?,
            Undo::StartWorker => fleet.worker.program.start()?,
            Undo::ThawWorker => fleet.worker.program.freeze(false)?,
        }
    }
    tokio::time::sleep_until(until.into()).await;
    Ok(())
}

/// Lets it happen, and returns what undoes it after which time.
async fn befall(fleet: &mut Fleet, mishap: Mishap, random: &mut Random) -> Result<Option<(Duration, Undo)>> {
    let chosen = random.index(REPLICAS);
    let replica = &mut fleet.replicas[chosen];
    let absence = random.between(Duration::ZERO, LONGEST_ABSENCE);
    let stall = random.between(Duration::ZERO, LONGEST_STALL);
    Ok(match mishap {
        Mishap::Kill => {
            // One that is down is started for it, so that the kills are as many as they are said to
            // be.
            replica.program.start()?;
            replica.program.kill()?;
            Some((absence, Undo::Start(chosen)))
        }
        Mishap::Freeze => {
            replica.program.start()?;
            replica.program.freeze(true)?;
            Some((random.between(SHORTEST_FREEZE, LONGEST_FREEZE), Undo::Thaw(chosen)))
        }
        Mishap::Restart => {
            replica.program.freeze(false)?;
            replica.program.restart().await?;
            None
        }
        Mishap::PostgresRestart | Mishap::PostgresCrash => {
            let is_crash = mishap == Mishap::PostgresCrash;
            fleet
                .postgres
                .stop(if is_crash { Shutdown::Immediate } else { Shutdown::Fast })
                .await?;
            fleet.postgres.start().await?;
            None
        }
        Mishap::RedisAway => {
            fleet.redis.stop()?;
            Some((absence, Undo::StartRedis))
        }
        // One that is away is empty when it comes back.
        Mishap::RedisEmptied => fleet.redis.empty().await.map_or(None, |()| None),
        Mishap::PostgresCut => {
            replica.to_postgres.cut();
            None
        }
        Mishap::PostgresSilence => {
            replica.to_postgres.silence();
            None
        }
        Mishap::RedisCut => {
            replica.to_redis.cut();
            None
        }
        Mishap::PostgresStall => {
            replica.to_postgres.stall(true);
            Some((stall, Undo::FreePostgres(chosen)))
        }
        Mishap::RedisStall => {
            replica.to_redis.stall(true);
            Some((stall, Undo::FreeRedis(chosen)))
        }
        Mishap::WorkerKill => {
            fleet.worker.program.start()?;
            fleet.worker.program.kill()?;
            Some((absence, Undo::StartWorker))
        }
        Mishap::WorkerFreeze => {
            fleet.worker.program.start()?;
            fleet.worker.program.freeze(true)?;
            Some((
                random.between(SHORTEST_FREEZE, LONGEST_FREEZE_OF_WORKER),
                Undo::ThawWorker,
            ))
        }
        Mishap::WorkerRestart => {
            fleet.worker.program.freeze(false)?;
            fleet.worker.program.restart().await?;
            None
        }
        Mishap::WorkerCut => {
            fleet.worker.to_postgres.cut();
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deck_has_every_mishap_and_the_order_of_its_seed() {
        let of = |seed| deck(8, &mut Random::new(seed, 0));
        let mut counts = Counts::new();
        for mishap in of(1) {
            *counts.entry(mishap).or_default() += 1;
        }
        assert_eq!(
            (counts.len(), counts[&Mishap::Kill], counts[&Mishap::Freeze]),
            (16, 8, 2)
        );
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(deck(0, &mut Random::new(1, 0)), []);
    }
}
