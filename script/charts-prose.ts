/** What the generated pages say above their charts. */

export const sandboxProse = `
# The sandbox machine

One instance, from its launch to its end; [src/machines/sandbox/machine.ts](../../../src/machines/sandbox/machine.ts). The
machine decides and does nothing: its actions note what became known and ask for effects (\`launch\`, \`claim\`, \`retire\`,
\`release\`, \`look\`, \`close\`), which the supervisor carries out and answers with an event.

- **Claimed at most once.** CLAIM is legal in \`idle.available\` alone. The claim is one conditional write; \`running\` is
  entered by the word that it landed, or by a record that shows it.
- **Never taken away.** \`running\` is left by END, by its own expiry, by an end that is noted on the record, or by its death.
- **Never stuck.** Every state that waits has a deadline, which repeats what may be repeated and looks at what may not.
  \`idle\` waits for nothing but the moment from which its start counts as a good one; \`running\` waits for its timeouts, if it has any.
- **Never forgotten.** END is legal in every state. What was told to end ends, also where its claim lands meanwhile.
`;

export const poolProse = `
# The pool machine

One pool; [src/machines/pool/machine.ts](../../../src/machines/pool/machine.ts). Its states are its lifecycle. How its
size compares with \`replicas\`, whether the breaker for failing starts is open and how far a rollout has come is arithmetic of its counts
([decisions.ts](../../../src/machines/pool/decisions.ts)): phase and conditions say it. It is told how its instances count as they move, and asks for effects (\`launch\`, \`trim\`, \`replace\`, \`renew\`, \`end-running\`, \`save-breaker\`, \`save-conditions\`, \`remove\`)
only while this replica leads the pool.

- **Never above \`replicas\`.** What is present, launches under way included, comes to \`replicas\` and not beyond.
- **Paced.** Launches take tokens from a bucket; so many may be starting at once. After failures in a row there are none
  for a pause that doubles, then one, until that one has started.
- **A rollout replaces, it doesn't take away.** An instance of an older revision is retired only where a launch follows at once, and a ready
  one only while no more than \`maxUnavailable\` of those that should be unclaimed are missing, starting or unavailable. A revision whose
  starts fail stops it: the older ones stay. See [rollouts](../../decisions/0019-rollouts.md).
- **Running sandboxes are neither trimmed nor replaced.** They are ended by a deletion with \`force\` alone.
- **Deletion turns neither back nor away.** The record goes once nothing unclaimed is left (with \`force\`: nothing at all).
`;

export const autoscalingGroupProse = `
# The autoscaling group machine

One group of an env; [src/machines/autoscaling/group-machine.ts](../../../src/machines/autoscaling/group-machine.ts). What it wants is
arithmetic ([src/machines/autoscaling/evaluation.ts](../../../src/machines/autoscaling/evaluation.ts), explained in
[autoscaling](../../autoscaling.md)); the machine sees to it that what was decided is done once. It is told how its members stand every 5 s,
at once after a claim that was refused or waits, and as soon as a cooldown is over; it asks for effects (\`save\`, \`apply\`,
\`tell\`, \`remember\`) only while this replica leads the env.

- **Saved, then done.** A decision is saved in the env's record before any pool is changed. Who lost that write drops it. Each pool
  is set to an absolute size, only from the size that was seen, and notes the decision's number in the same write: who comes later with
  the same decision, or an earlier one, changes nothing.
- **Finished by the next.** A leader that finds a decision of the last minute unfinished carries it out; an older one is dropped.
- **The owner wins.** A pool whose size somebody changed meanwhile is left alone, and so is all where the group was disabled.
- **Nothing waits for ever.** What is not answered within 5 s is asked for again, under the same number.
`;

export const memberProse = `
# The env member machine

One member of an [env](../../envs.md), with the pool of its name; [src/machines/env/member-machine.ts](../../../src/machines/env/member-machine.ts).
It is told what its env and its pool are now, and asks for effects (\`make-pool\`, \`settle-pool\`, \`end-pool\`, \`forget\`) only while this
replica leads the env, one at a time: its states say whether it may ask, and whether an answer is awaited. What the member is for its
owner (\`Pending\`, \`Active\`, \`Saturated\`, \`Draining\`, \`Unreachable\`, \`Error\`) is read off env and pool, by every replica:
\`memberStateOf\` in [member-decisions.ts](../../../src/machines/env/member-decisions.ts).

- **The env is the truth.** A member that the env lists gets its pool, also where whoever added it died before. A pool that names an
  env which does not list it ends. Each effect looks first at what the store says.
- **Drained before it goes.** The env lists a member until its pool is gone.
- **Never stuck, never hasty.** What failed is tried again after a pause that doubles, up to a minute; another word of the owner's
  is tried at once.
`;

export const approvalProse = `
# The approval machine

One request that waits for a person; [src/machines/approval/machine.ts](../../../src/machines/approval/machine.ts). Its record is the truth: requests move it
by conditional writes ([src/model/approvals/approval-changes.ts](../../../src/model/approvals/approval-changes.ts)), of which the first one stands. The machine sees to what no request waits for,
the end of its time (\`expire\`, \`settle\`), and only while this replica leads it. What is over has no actor, and is its record alone.

- **Decisions are final.** Nothing leads back to pending.
- **Used once.** A grant for one effect is consumed by a write of its own, before the effect; what died between the two is
  repeated under the approval's id, so that the effect is there once. Given back is only what was refused at the first attempt.
- **Never stuck.** A pending one and an unused grant expire, by the clock of whoever looks, too; a use that nobody finished is settled.
`;
