import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { envConditionsOf } from '../../machines/env/conditions.ts';
import { isSynced } from '../../machines/env/member-decisions.ts';
import { heldSince, sayTheSame } from '../../machines/pool/decisions.ts';
import type { EnvCondition } from '../../model/envs/env-condition.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import type { TemplateRecord } from '../../model/templates/template.ts';
import { specOfVersion } from '../../model/templates/template-versions.ts';
import type { GroupHost } from './group-host.ts';
import type { EnvMirror } from '../runtime/record-mirror.ts';
import type { MemberHost } from './member-host.ts';
import type { PoolHost } from '../pool/pool-host.ts';

export interface EnvConditionsDeps {
  readonly envs: EnvMirror;
  readonly members: MemberHost;
  readonly groups: Pick<GroupHost, 'group'>;
  readonly pools: Pick<PoolHost, 'get'>;
  readonly template: (name: string) => TemplateRecord | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

const EVERY_MS = 10_000;
const SETTLING_MS = 1_000;

/** The leader saves changed ones, at most once in 10 s for each env. */
export class EnvConditions {
  readonly #deps: EnvConditionsDeps;
  /** Even if not saved yet, so that their times stay constant. */
  readonly #said = new Map<string, readonly EnvCondition[]>();
  readonly #due = new Map<string, () => void>();
  readonly #savedAt = new Map<string, number>();
  #stopped = false;

  constructor(deps: EnvConditionsDeps) {
    this.#deps = deps;
  }

  /** Saved times win, also at the leader, which may have another time from before it led. */
  now(record: EnvRecord): readonly EnvCondition[] {
    const { clock, envs } = this.#deps;
    const said = this.#said.get(record.uid) ?? [];
    const conditions = heldSince(this.#wordsOf(record), [record.conditions, said], clock.now());
    if (envs.get(record.uid)) this.#said.set(record.uid, conditions);
    return conditions;
  }

  consider(uid: string): void {
    const { clock, envs, members } = this.#deps;
    if (!envs.get(uid)) {
      this.#savedAt.delete(uid);
      this.#said.delete(uid);
    }
    if (this.#stopped || this.#due.has(uid) || !members.leads(uid)) return;
    const at = Math.max(
      clock.now() + SETTLING_MS,
      (this.#savedAt.get(uid) ?? Number.NEGATIVE_INFINITY) + EVERY_MS,
    );
    this.#due.set(
      uid,
      clock.at(at, () => {
        this.#due.delete(uid);
        this.#save(uid).catch((error: unknown) => {
          this.#deps.log.warn({ entity: 'env', uid, error }, 'env-conditions-not-saved');
          this.consider(uid);
        });
      }),
    );
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#due.values()) cancel();
    this.#due.clear();
  }

  async #save(uid: string): Promise<void> {
    const { envs, members, clock } = this.#deps;
    await envs.change(uid, (record) => {
      const conditions = this.now(record);
      if (!members.leads(uid) || sayTheSame(conditions, record.conditions)) return record;
      this.#savedAt.set(uid, clock.now());
      return { ...record, conditions };
    });
  }

  #wordsOf(record: EnvRecord): ReturnType<typeof envConditionsOf> {
    const { groups, members, pools, template } = this.#deps;
    const { name, version } = record.templateRef;
    const standing = template(name);
    return envConditionsOf({
      deleting: record.deleting !== false,
      template: standing
        ? {
            found: true,
            kept: version === undefined || specOfVersion(standing, version) !== undefined,
            newest: standing.version,
          }
        : { found: false, kept: false },
      templateRef: record.templateRef,
      groups: record.groups,
      limits: Object.fromEntries(
        record.groups.flatMap((group) => {
          const limits = groups.group(record.uid, group.name)?.outlook?.limits;
          return limits ? [[group.name, limits]] : [];
        }),
      ),
      led: members.leads(record.uid),
      saved: record.conditions,
      members: record.members.map((member) => {
        const snapshot = members.member(record.uid, member.name);
        const pool = snapshot?.fact.pool && pools.get(snapshot.fact.pool.uid);
        return {
          name: member.name,
          config: member.config,
          state: snapshot?.state ?? 'Pending',
          trouble: snapshot?.trouble,
          synced:
            snapshot !== undefined &&
            isSynced(snapshot.fact) &&
            snapshot.fact.pool?.unresolved === undefined,
          moving: pool !== undefined && MOVING.has(pool.phase),
        };
      }),
    });
  }
}

const MOVING: ReadonlySet<string> = new Set(['Pending', 'Scaling', 'Updating', 'Deleting']);
