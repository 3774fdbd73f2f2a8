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

/** So long it is believed to be there: somebody may remove it. */
const LOOK_AGAIN_MS = 60_000;
/**
 * Those of other versions are removed no earlier than so long after the start, and no oftener: a
 * replica of the earlier version may go on making Pods meanwhile. One that goes on longer makes its
 * own anew within a minute, and the kubelet finds it then.
 */
const TIDY_EVERY_MS = 3_600_000;
const TRY = { query: { dryRun: 'All' } };
const MOST_KNOWN = 10_000;
/** Pods with another agent that are looked at; where there are more, nothing is removed. */
const MOST_PODS = 500;

interface Known {
  readonly until: number;
  readonly there: Promise<void>;
}

/**
 * Puts the agent where Pods find it: into a ConfigMap of each namespace that gets one. What was
 * there under its name before is replaced unless it is the agent. Those that no Pod mounts any more
 * are removed.
 */
export class AgentMaps {
  readonly #deps: AgentMapsDeps;
  readonly #known = new Map<string, Known>();
  readonly #tidied = new Map<string, number>();
  #startedAt: number | undefined;

  constructor(deps: AgentMapsDeps) {
    this.#deps = deps;
  }

  /** Resolves once the namespace has it. Rejects as `ApiClient.create`. */
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
    // A megabyte is sent only where it is needed.
    const isMissing = await this.#creates(path, { ...map, binaryData: {} }, TRY);
    if (isMissing && (await this.#creates(path, map))) return;
    if (isChecked || (await this.#isOurs(namespace, program))) return;
    if (!(await this.#creates(path, map)))
      throw new OutcomeUnknown('another agent is in its place');
  }

  /** Resolves with false if one of its name is there. */
  async #creates(path: string, map: object, options?: CallOptions): Promise<boolean> {
    try {
      await this.#deps.api.create(path, map, options);
      return true;
    } catch (error) {
      if (!isRefused(error, 409)) throw error;
      if (error.reason === 'AlreadyExists') return false;
      // as of a quota that others change at this moment: nothing was created
      throw new OutcomeUnknown(error.message, { cause: error });
    }
  }

  /**
   * Says whether what has its name is the agent, and removes it if it is not. A removal that is
   * only tried says what there is, so no right to read it is needed.
   */
  async #isOurs(namespace: string, program: AgentProgram): Promise<boolean> {
    const { api, log } = this.#deps;
    const path = mapsPath(namespace);
    const query = { fieldSelector: `metadata.name=${mapNameOf(program.id)}` };
    const answer = (await api.remove(path, { dryRun: true }, { query })) as MapList;
    const [found] = answer.items ?? [];
    if (!found || isAgentMap(found, program)) return found !== undefined;
    log.warn({ namespace }, 'a ConfigMap with the name of the agent was not the agent; removed it');
    await api.remove(path, { uid: found.metadata.uid }, { query });
    return false;
  }

  #tidyIfDue(namespace: string): void {
    const now = this.#deps.clock.now();
    const last = this.#tidied.get(namespace) ?? this.#startedAt ?? now;
    if (now - last < TIDY_EVERY_MS) return;
    if (this.#tidied.size >= MOST_KNOWN) this.#tidied.clear();
    this.#tidied.set(namespace, now);
    this.#tidy(namespace).catch((error: unknown) => {
      this.#deps.log.warn({ namespace, error }, 'old agents could not be removed');
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
  /** Null where there are none. */
  readonly items: readonly { readonly metadata: { readonly uid: string } }[] | null;
}

interface PodList {
  readonly metadata: { readonly continue?: string };
  /** Null where there are none. */
  readonly items:
    | readonly { readonly metadata: { readonly labels: Readonly<Record<string, string>> } }[]
    | null;
}

/** Selects what has another agent than these. */
const withoutAgents = (ids: readonly string[]): string =>
  `${AGENT_LABEL},${AGENT_LABEL} notin (${ids.join(',')})`;

const mapsPath = (namespace: string): string =>
  `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps`;
