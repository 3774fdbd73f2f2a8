import { NoPlace, OutcomeUnknown } from '../../../contracts/sandbox-driver.ts';
import { FairSlots, within } from '../../../lib/fair-slots.ts';
import { podNameOf } from '../../../model/identifiers.ts';
import type { LaunchOrder, InstanceRecord } from '../../../model/sandbox.ts';
import { tenantKey } from '../../../model/tenant.ts';
import type { ApiClient } from '../../api/api-calls.ts';
import { ApiRefused, ApiUnreachable, isAbsent, isRefused, NotSent } from '../../api/api-errors.ts';
import { cleaned } from '../cleaned-message.ts';
import type { InstanceMirror } from '../instance-mirror.ts';
import { agentFor } from './agent-programs.ts';
import type { AgentMaps } from './agent-maps.ts';
import { podOf, podPath, podsPath, storedPodOf, type PodSettings } from './pod-resource.ts';
import {
  newSandboxObject,
  sandboxesPath,
  sandboxPath,
  storedFrom,
  type StoredSandbox,
} from '../sandbox-resource.ts';

export interface PodCreatorDeps {
  readonly api: Pick<ApiClient, 'create' | 'get'>;
  readonly untilIdleEnough: () => Promise<void>;
  readonly mirror: InstanceMirror;
  readonly pods: PodSettings;
  readonly agentMaps: Pick<AgentMaps, 'provide'>;
}

/** The lane's number of connections, so a Pod does not queue behind other instances' records. */
const MOST_AT_ONCE = 16;
/**
 * Leaves connections for others if one namespace's API calls hang, as with a webhook that is down.
 */
const MOST_AT_ONCE_OF_TENANT = 14;
const MOST_WAITING = 4_096;
const MOST_WAITING_OF_TENANT = 1_024;
/** Shorter than the interval of repeated launches. */
const PATIENCE_MS = 10_000;
const TURN = {
  until: within(PATIENCE_MS),
  full: () => new NotSent('too many instances are waiting to be created'),
  late: () =>
    new NotSent(
      `the instance was not created within ${PATIENCE_MS} ms, because others are created first`,
    ),
};

/**
 * Creates first the record, then the Pod that it owns, so a dying process leaves few records
 * without a Pod. An earlier attempt may have created either. Owners of pools take turns.
 */
export class PodCreator {
  readonly #deps: PodCreatorDeps;
  readonly #turns = new FairSlots({
    most: () => MOST_AT_ONCE,
    mostOfTenant: () => MOST_AT_ONCE_OF_TENANT,
    mostWaiting: MOST_WAITING,
    mostWaitingOfTenant: MOST_WAITING_OF_TENANT,
  });

  constructor(deps: PodCreatorDeps) {
    this.#deps = deps;
  }

  /** `may` throws if the launch must stop. Rejects as `SandboxDriver.launch` does. */
  async create(launchOrder: LaunchOrder, may: () => void): Promise<InstanceRecord> {
    try {
      await this.#deps.untilIdleEnough();
      const owner = tenantKey(launchOrder.record.poolOwner);
      const release = await this.#turns.take(owner, TURN);
      try {
        return await this.#make(launchOrder, may);
      } finally {
        release();
      }
    } catch (error) {
      throw await this.#refusalOf(error, launchOrder.record.poolOwner.namespace);
    }
  }

  async #make(launchOrder: LaunchOrder, may: () => void): Promise<InstanceRecord> {
    may();
    const stored = await this.#record(launchOrder);
    if (stored.record.claim || this.#deps.mirror.pod(launchOrder.record.id)) return stored.record;
    const { agentMaps, pods } = this.#deps;
    const { program } = agentFor(launchOrder.definition, pods.agents);
    await agentMaps.provide(launchOrder.record.poolOwner.namespace, program);
    may();
    await this.#pod(launchOrder, stored.uid);
    return stored.record;
  }

  async #record({ record }: LaunchOrder): Promise<StoredSandbox> {
    const { api, mirror } = this.#deps;
    const {
      id,
      poolUid,
      poolOwner: { namespace },
    } = record;
    const made = mirror.createsSandbox();
    let isMade = true;
    const answer = await api
      .create(sandboxesPath(namespace), newSandboxObject(record))
      .catch((error: unknown) => {
        if (!isRefused(error, 409)) throw error;
        isMade = false;
        return api.get(sandboxPath(namespace, id));
      });
    const stored = storedFrom(answer);
    if (stored.record.poolUid !== poolUid) throw new Error('another record with its name exists');
    if (isMade) made(stored);
    else mirror.putSandbox(stored);
    return stored;
  }

  async #pod(launchOrder: LaunchOrder, ownerUid: string): Promise<void> {
    const { api, mirror, pods } = this.#deps;
    const {
      id,
      poolOwner: { namespace },
    } = launchOrder.record;
    try {
      const made = storedPodOf(
        await api.create(podsPath(namespace), podOf(launchOrder, ownerUid, pods)),
      );
      if (made) mirror.putPod(made);
    } catch (error) {
      const failure = error instanceof OutcomeUnknown ? error.cause : undefined;
      if (!isRefused(error, 409) && !(failure instanceof ApiRefused)) throw error;
      const found = await api.get(podPath(namespace, podNameOf(id))).catch((unread: unknown) => {
        if (failure === undefined || !isAbsent(unread)) throw unread;
        return undefined;
      });
      // The answer was an error, as of a webhook that is down. If the Pod still appears, it is
      // deleted with its record.
      if (found === undefined) throw failure;
      const there = storedPodOf(found);
      if (there?.ownerUid !== ownerUid)
        throw new Error('another Pod with its name exists', { cause: error });
      mirror.putPod(there);
    }
  }

  async #refusalOf(error: unknown, namespace: string): Promise<unknown> {
    // Temporary, so the launch is repeated.
    if (error instanceof NotSent || error instanceof ApiUnreachable)
      return new OutcomeUnknown(error.message, { cause: error });
    if (!(error instanceof ApiRefused)) return error;
    if (error.causes.some(({ reason }) => reason === 'NamespaceTerminating'))
      return new NoPlace(`the namespace ${namespace} is being deleted`, { cause: error });
    if (error.status === 404)
      return new NoPlace(
        `the namespace ${namespace} does not exist, or no sandboxes can be created in it ` +
          `(${cleaned(error.message)})`,
        { cause: error },
      );
    if (error.status === BUSY)
      return new OutcomeUnknown(`the API server is busy: ${error.message}`, { cause: error });
    const right = error.status === FORBIDDEN ? missingRight(error.message, namespace) : undefined;
    if (!right) return new Error(cleaned(error.message), { cause: error });
    if ((await this.#isHad(right)) ?? true)
      return new OutcomeUnknown(
        `the API server could not check Sandpool's rights: ${error.message}`,
        {
          cause: error,
        },
      );
    if (right.resource !== 'sandboxes') return new Error(cleaned(error.message), { cause: error });
    // Roles are bound in each namespace, so they are also missing if the namespace is.
    return new NoPlace(`the namespace ${namespace} is missing, or Sandpool has no rights in it`, {
      cause: error,
    });
  }

  /**
   * Undefined if the API server refuses this question too: it has not loaded the roles yet, as just
   * after its start.
   */
  async #isHad(right: Right): Promise<boolean | undefined> {
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: right },
    };
    try {
      const { status } = (await this.#deps.api.create(REVIEWS_PATH, review)) as {
        readonly status?: { readonly allowed?: boolean };
      };
      return status?.allowed === true;
    } catch {
      return undefined;
    }
  }
}

interface Right {
  readonly namespace: string;
  readonly verb: string;
  readonly resource: string;
  readonly group: string;
}

/** Undefined for other messages, such as those of an admission webhook. */
const missingRight = (message: string, namespace: string): Right | undefined => {
  const [, verb, resource, group] =
    /is forbidden: User "[^"]*" cannot (\w+) resource "([\w/]+)" in API group "([^"]*)"/.exec(
      message,
    ) ?? [];
  return verb && resource ? { namespace, verb, resource, group: group ?? '' } : undefined;
};

const BUSY = 429;
const FORBIDDEN = 403;
const REVIEWS_PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
