/** The text above the charts of docs/reference/machines. */

export const sandboxProse = `
# The sandbox machine

One instance, from launch to end: [src/machines/sandbox/machine.ts](../../../src/machines/sandbox/machine.ts). The machine only
decides. Its actions record what became known, and request effects (\`launch\`, \`claim\`, \`retire\`, \`release\`, \`look\`,
\`close\`). The supervisor carries them out and answers with an event.

- **Claimed at most once.** CLAIM is legal only in \`idle.available\`. The claim is one conditional write. The machine enters
  \`running\` when the write is confirmed, or when a record shows it.
- **Never taken away.** Only END, its own expiry, an end in its record, or its death lead out of \`running\`.
- **Never stuck.** Every waiting state has a deadline. Then the machine repeats an effect that may be repeated, and reads the
  record for any other. \`idle\` waits only until its start counts as a good one, \`running\` only for its timeouts.
- **Never forgotten.** END is legal in every state. An instance that got END ends, even if a claim succeeds at the same time.
`;

export const poolProse = `
# The pool machine

One pool: [src/machines/pool/machine.ts](../../../src/machines/pool/machine.ts). Its states are only its lifecycle. Size, the breaker
for failing starts and the progress of a rollout are computed from its counts
([decisions.ts](../../../src/machines/pool/decisions.ts)), and show as phase and conditions. The machine receives the counts of its
instances when they change. It requests effects (\`launch\`, \`trim\`, \`replace\`, \`renew\`, \`end-running\`, \`save-breaker\`,
\`save-conditions\`, \`remove\`) only while this replica leads the pool.

- **Never above \`replicas\`.** Present instances, and launches in progress, never exceed \`replicas\`.
- **Paced.** Launches take tokens from a bucket, and only a limited number starts at once. After failures in a row the pool
  pauses, twice as long each time. Then it starts one instance, and the rest once that one has started.
- **A rollout replaces instances.** An instance of an older revision is retired only if a launch follows at once. A ready one is
  retired only while at most \`maxUnavailable\` of the unclaimed instances are missing, starting or unavailable. If a revision's
  starts fail, the rollout stops, and older instances stay. See [rollouts](../../decisions/0019-rollouts.md).
- **Running sandboxes are neither trimmed nor replaced.** Only a deletion with \`force\` ends them.
- **A deletion is final.** The record goes once no unclaimed instance is left; with \`force\`, once no instance is left.
`;

export const autoscalingGroupProse = `
# The autoscaling group machine

One group of an env: [src/machines/autoscaling/group-machine.ts](../../../src/machines/autoscaling/group-machine.ts). The wanted sizes are
computed in [evaluation.ts](../../../src/machines/autoscaling/evaluation.ts), which [autoscaling](../../autoscaling.md) explains. The machine
carries each decision out once. It receives the state of its members every 5 s, at once after a claim that was refused or waits,
and when a cooldown ends. It requests effects (\`save\`, \`apply\`, \`tell\`, \`remember\`) only while this replica leads the env.

- **Saved, then applied.** A decision is saved in the env's record before any pool changes. If that write conflicts, the decision is
  dropped. Each pool gets an absolute size, only if it still has the size that the decision saw. The same write stores the decision's
  number, so the same decision, or an earlier one, changes nothing later.
- **Completed by the next leader.** A new leader carries out a decision of the last minute, and drops an older one.
- **The owner wins.** If somebody changed a pool's size in between, the pool is left alone. If the group was disabled, all are.
- **No wait without end.** An effect without an answer for 5 s is requested again, under the same number.
`;

export const memberProse = `
# The env member machine

One member of an [env](../../envs.md), with the pool of its name:
[src/machines/env/member-machine.ts](../../../src/machines/env/member-machine.ts). The machine receives the current env and pool. It
requests effects (\`make-pool\`, \`settle-pool\`, \`end-pool\`, \`forget\`) one at a time, only while this replica leads the env. Its
states say whether it may request one, and whether an answer is due. Every replica computes the state that the owner sees
(\`Pending\`, \`Active\`, \`Saturated\`, \`Draining\`, \`Unreachable\`, \`Error\`) from env and pool: \`memberStateOf\` in
[member-decisions.ts](../../../src/machines/env/member-decisions.ts).

- **The env is the truth.** A member in the env's list gets its pool, even if the replica that added it died. A pool ends if its env
  does not list it. Each effect reads the store first.
- **Drained before it goes.** The env lists a member until its pool is gone.
- **Never stuck, never hasty.** A failed effect is repeated after a pause, which doubles up to a minute. A change by the owner is
  tried at once.
`;

export const approvalProse = `
# The approval machine

One request that waits for a person: [src/machines/approval/machine.ts](../../../src/machines/approval/machine.ts). Its record is the
truth. Requests change it by conditional writes
([approval-changes.ts](../../../src/model/approvals/approval-changes.ts)), and the first write wins. The machine does only what no
request waits for: it ends an approval whose time is over (\`expire\`, \`settle\`), while this replica leads it. A finished approval
has no actor, only its record.

- **Decisions are final.** Nothing leads back to pending.
- **Used once.** A grant for one effect is consumed by its own write, before the effect. If the daemon dies between the two, the
  effect is repeated under the approval's id, so it happens once. Only a refusal of the first attempt returns the grant.
- **Never stuck.** A pending approval and an unused grant expire. A use that nobody finished is settled.
`;
