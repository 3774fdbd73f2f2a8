import type { Clock } from '../../contracts/clock.ts';
import {
  DefinitionRefused,
  InstanceGone,
  RecordConflict,
  type SandboxDriver,
} from '../../contracts/sandbox-driver.ts';
import { resumption } from '../../model/claim-change.ts';
import type { SandboxEvent } from '../../machines/sandbox/events.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import {
  featureDisabled,
  sandboxNotFound,
  sandboxNotRunning,
  sandboxPaused,
  unavailable,
} from '../../model/refusals.ts';
import type { SandboxSnapshot } from './sandbox-snapshot.ts';

export interface SandboxPausesDeps {
  readonly driver: Pick<SandboxDriver, 'amend' | 'describe'>;
  readonly clock: Clock;
  readonly sandbox: (id: InstanceId) => SandboxSnapshot | undefined;
  readonly send: (id: InstanceId, event: SandboxEvent) => boolean;
  readonly refresh: (id: InstanceId, namespace: string) => Promise<void>;
}

const DEADLINE_MS = 5_000;

interface Change {
  readonly paused: boolean;
  readonly done: Promise<void>;
}

/** Serializes the changes of one sandbox; equal concurrent changes share one write. */
export class SandboxPauses {
  readonly #deps: SandboxPausesDeps;
  readonly #underWay = new Map<InstanceId, Change>();

  constructor(deps: SandboxPausesDeps) {
    this.#deps = deps;
  }

  /**
   * Durable when this resolves. Refuses with FEATURE_DISABLED if the driver can't pause, with
   * SANDBOX_NOT_RUNNING if the sandbox does not run.
   */
  async set(id: InstanceId, paused: boolean): Promise<void> {
    if (paused && !this.#deps.driver.describe().pauses)
      throw featureDisabled('state', 'support for pausing sandboxes');
    for (let other = this.#underWay.get(id); other; other = this.#underWay.get(id)) {
      if (other.paused === paused) return await other.done;
      await other.done.catch(() => undefined);
    }
    const done = this.#change(id, paused).finally(() => {
      this.#underWay.delete(id);
    });
    this.#underWay.set(id, { paused, done });
    await done;
  }

  /** Resumes a paused sandbox if its claim permits that; otherwise refuses. */
  async awake(snapshot: SandboxSnapshot): Promise<SandboxSnapshot> {
    const { id, record } = snapshot.context;
    if (record?.claim?.pausedAt === undefined) return snapshot;
    if (!record.claim.autoResume) throw sandboxPaused();
    await this.set(id, false);
    const awake = this.#deps.sandbox(id);
    if (!awake) throw sandboxNotFound();
    return awake;
  }

  async #change(id: InstanceId, paused: boolean): Promise<void> {
    const { driver, clock, sandbox, send, refresh } = this.#deps;
    for (const until = clock.now() + DEADLINE_MS; ;) {
      const { status = 'Completed', context } = sandbox(id) ?? {};
      const record = context?.record;
      if (status !== 'Running' || !record?.claim) throw sandboxNotRunning(status);
      if ((record.claim.pausedAt !== undefined) === paused) return;
      try {
        const now = clock.now();
        const change = paused ? { pausedAt: now } : resumption(record.claim, now);
        const changed = await driver.amend(id, change, record.revision);
        send(id, { type: 'AMENDED', record: changed, now: clock.now() });
        return;
      } catch (error) {
        if (error instanceof DefinitionRefused)
          throw featureDisabled('state', 'support for pausing sandboxes');
        if (error instanceof InstanceGone) throw sandboxNotFound();
        await refresh(id, record.poolOwner.namespace);
        if (!(error instanceof RecordConflict)) throw error;
        if (clock.now() >= until)
          throw unavailable('the sandbox was changed by another request; try again');
      }
    }
  }
}
