import type { Clock } from '../../contracts/clock.ts';
import {
  DefinitionRefused,
  RecordConflict,
  type SandboxDriver,
} from '../../contracts/sandbox-driver.ts';
import type { SandboxEvent, SandboxIntent } from '../../machines/sandbox/events.ts';
import { isPausedAtEnd } from '../../model/pools/claim-rules.ts';
import type { InstanceId } from '../../model/identifiers.ts';

/** How long a pause in place of the end is tried for, before it ends after all. */
const PAUSE_MS = 30_000;

export interface PausesAtEndDeps {
  readonly driver: Pick<SandboxDriver, 'read' | 'amend'>;
  readonly clock: Clock;
}

/** Pauses sandboxes at the moment that their claims name, in place of their end. */
export class PausesAtEnd {
  readonly #deps: PausesAtEndDeps;
  /** Since when this process tries: what was due before is tried from then on. */
  readonly #began: number;
  readonly #underWay = new Set<InstanceId>();

  constructor(deps: PausesAtEndDeps) {
    this.#deps = deps;
    this.#began = deps.clock.now();
  }

  /**
   * Pauses one whose moment it is, and returns what is known of it then: that it is paused, or that
   * its record says something else by now. Undefined where it ends: it is not to be paused, or
   * could not be. Rejects where it is to be tried again.
   */
  async pause(
    id: InstanceId,
    { reason, claim }: Extract<SandboxIntent, { type: 'confirm-expiry' }>,
  ): Promise<SandboxEvent | undefined> {
    const { driver, clock } = this.#deps;
    const now = clock.now();
    if (reason === 'idle-timeout' || !isPausedAtEnd(claim, now)) return undefined;
    if (this.#underWay.has(id)) throw new Error('its pause is under way');
    this.#underWay.add(id);
    try {
      // A pause that was taken back has moved it.
      const fact = await driver.read(id);
      const { record } = fact;
      const known = record?.state === 'claimed' ? record.claim : undefined;
      if (!record || !known || known.pausedAt !== undefined || !isPausedAtEnd(known, now))
        return { type: 'FACT', fact, now: clock.now() };
      const paused = await driver.amend(id, { pausedAt: now }, record.revision);
      return { type: 'AMENDED', record: paused, now: clock.now() };
    } catch (error) {
      const { endsAt = 0 } = claim;
      const isOver = now >= Math.max(endsAt, this.#began) + PAUSE_MS;
      const isTried = isOver && !(error instanceof RecordConflict);
      if (!isTried && !(error instanceof DefinitionRefused)) throw error;
      return undefined;
    } finally {
      this.#underWay.delete(id);
    }
  }
}
