import type { Clock } from '../../../contracts/clock.ts';
import type { Log } from '../../../contracts/log.ts';
import { OutcomeUnknown } from '../../../contracts/sandbox-driver.ts';
import type { ApiClient, CallOptions } from '../../api/api-calls.ts';
import { isRefused } from '../../api/api-errors.ts';
import type { AgentProgram, Agents } from './agent-programs.ts';
import { AGENT_LABEL, agentMap, isAgentMap, mapNameOf } from './pod-agent.ts';
import { podsPath } from './pod-resource.ts';

export interface AgentMapsDeps {
  readonly api: Pick<ApiClient, 'create' | 'list' | 'remove'>;
  readonly agents: Agents;
  readonly clock: Clock;
  readonly log: Log;
}

const LOOK_AGAIN_MS = 60_000;
/**
 * A replica of the earlier version may still create Pods. If it does so for longer, it recreates
 * its ConfigMap within a minute.
 */
const TIDY_EVERY_MS = 3_600_000;
const TRY = { query: { dryRun: 'All' } };
const MOST_KNOWN = 10_000;
/** With more Pods of other agents, nothing is removed. */
const MOST_PODS = 500;

interface Known {
  readonly until: number;
  readonly there: Promise<void>;
}

/**
 * Provides the agent in a ConfigMap of each namespace. Replaces one of the same name that is not
 * the agent, and removes unused ones.
 */
export class AgentMaps {
  readonly #deps: AgentMapsDeps;
  readonly #known = new Map<string, Known>();
  readonly #tidied = new Map<string, number>();
  #startedAt: number | undefined;

  constructor(deps: AgentMapsDeps) {
    this.#deps = deps;
  }

  /** Rejects as `ApiClient.create`. */
  async provide(namespace: string, program: AgentProgram): Promise<void> {
    const now = this.#deps.clock.now();
    this.#startedAt ??= now;
    const key = `${namespace}/${program.id}`;
    const known = this.#known.get(key);
    if (known && now < known.until) return await known.there;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    const there = this.#make(namespace, program, known !== undefined);
    this.#known.set(key, { until: now + LOOK_AGAIN_MS, there });
    there.then(
      () => {
        this.#tidyIfDue(namespace);
      },
      () => this.#known.delete(key),
    );
    return await there;
  }

  async #make(namespace: string, program: AgentProgram, isChecked: boolean): Promise<void> {
    const map = agentMap(program, namespace);
    const path = mapsPath(namespace);
    // Tries without the megabyte of data first.
    const isMissing = await this.#creates(path, { ...map, binaryData: {} }, TRY);
    if (isMissing && (await this.#creates(path, map))) return;
    if (isChecked || (await this.#isOurs(namespace, program))) return;
    if (!(await this.#creates(path, map)))
      throw new OutcomeUnknown(`another ConfigMap took the name ${mapNameOf(program.id)}`);
  }

  async #creates(path: string, map: object, options?: CallOptions): Promise<boolean> {
    try {
      await this.#deps.api.create(path, map, options);
      return true;
    } catch (error) {
      if (!isRefused(error, 409)) throw error;
      if (error.reason === 'AlreadyExists') return false;
      // such as a conflict over a quota: nothing was created
      throw new OutcomeUnknown(error.message, { cause: error });
    }
  }

  /**
   * Deletes a ConfigMap that is not the agent. A dry-run deletion returns its content, so the
   * daemon needs no right to read it.
   */
  async #isOurs(namespace: string, program: AgentProgram): Promise<boolean> {
    const { api, log } = this.#deps;
    const path = mapsPath(namespace);
    const name = mapNameOf(program.id);
    const query = { fieldSelector: `metadata.name=${name}` };
    const answer = (await api.remove(path, { dryRun: true }, { query })) as MapList;
    const [found] = answer.items ?? [];
    if (!found || isAgentMap(found, program)) return found !== undefined;
    await api.remove(path, { uid: found.metadata.uid }, { query });
    log.warn({ namespace, name }, 'config-map-not-the-agent');
    return false;
  }

  #tidyIfDue(namespace: string): void {
    const now = this.#deps.clock.now();
    const last = this.#tidied.get(namespace) ?? this.#startedAt ?? now;
    if (now - last < TIDY_EVERY_MS) return;
    if (this.#tidied.size >= MOST_KNOWN) this.#tidied.clear();
    this.#tidied.set(namespace, now);
    this.#tidy(namespace).catch((error: unknown) => {
      this.#deps.log.warn({ namespace, error }, 'old-agents-not-removed');
    });
  }

  async #tidy(namespace: string): Promise<void> {
    const { api, agents } = this.#deps;
    const own = [...agents.programs.values()].map(({ id }) => id);
    const pods = (await api.list(
      podsPath(namespace),
      { labelSelector: withoutAgents(own), limit: MOST_PODS },
      { metadataOnly: true },
    )) as PodList;
    if (pods.metadata.continue) return;
    const mounted = (pods.items ?? []).map(({ metadata }) => metadata.labels[AGENT_LABEL] ?? '');
    const labelSelector = withoutAgents([...new Set([...own, ...mounted])]);
    await api.remove(mapsPath(namespace), {}, { query: { labelSelector } });
  }
}

interface MapList {
  /** Null if empty. */
  readonly items: readonly { readonly metadata: { readonly uid: string } }[] | null;
}

interface PodList {
  readonly metadata: { readonly continue?: string };
  readonly items:
    | readonly { readonly metadata: { readonly labels: Readonly<Record<string, string>> } }[]
    | null;
}

const withoutAgents = (ids: readonly string[]): string =>
  `${AGENT_LABEL},${AGENT_LABEL} notin (${ids.join(',')})`;

const mapsPath = (namespace: string): string =>
  `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps`;
