//! Work of tenants, which take turns.

use std::collections::VecDeque;

use values::tenant::TenantId;

/// Whose work it is; `None` for that of the service.
pub(super) type Owner = Option<TenantId>;

/// The work that waits, by owner. Those who wait longest for a turn are first.
#[derive(Debug)]
pub(super) struct Turns<T>(VecDeque<(Owner, VecDeque<T>)>);

impl<T> Turns<T> {
    pub(super) fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds work behind the other work of its owner.
    pub(super) fn add(&mut self, owner: Owner, work: T) {
        self.queue(owner).push_back(work);
    }

    /// Adds the rest of work whose turn is over. It goes on at the owner's next turn.
    pub(super) fn put_back(&mut self, owner: Owner, rest: T) {
        self.queue(owner).push_front(rest);
    }

    /// Takes the next work. Its owner's next turn is after those of all others.
    pub(super) fn next(&mut self) -> Option<(Owner, T)> {
        let (owner, mut queue) = self.0.pop_front()?;
        let work = queue.pop_front()?;
        if !queue.is_empty() {
            self.0.push_back((owner.clone(), queue));
        }
        Some((owner, work))
    }

    fn queue(&mut self, owner: Owner) -> &mut VecDeque<T> {
        let index = self.0.iter().position(|(other, _)| *other == owner);
        let index = index.unwrap_or_else(|| {
            self.0.push_back((owner, VecDeque::new()));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_take_turns_regardless_of_their_work() {
        let mut turns = Turns::new();
        let [first, second] = ["a", "b"].map(|name| Some(name.parse::<TenantId>().unwrap()));
        for (owner, work) in [
            (&first, 1),
            (&first, 2),
            (&first, 3),
            (&second, 4),
            (&None, 5),
            (&second, 6),
        ] {
            turns.add(owner.clone(), work);
        }
        let mut done = Vec::new();
        let mut is_over = true;
        while let Some((owner, work)) = turns.next() {
            // The first work takes two turns.
            if std::mem::take(&mut is_over) {
                turns.put_back(owner, work);
            }
            done.push(work);
        }
        assert_eq!(done, [1, 4, 5, 1, 6, 2, 3]);
        assert!(turns.is_empty());
    }
}
