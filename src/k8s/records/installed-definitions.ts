import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { isRefused } from '../api/api-errors.ts';
import { listPageOf } from '../api/api-objects.ts';
import { GROUP, type OutdatedReport, type ResourceObject } from '../api/resource.ts';

/**
 * The version of the definitions that script/crds.ts writes. A change of them raises it: the API
 * server cuts off what an older definition lacks, and says nothing.
 */
export const DEFINITIONS_VERSION = 1;
/** The annotation of a definition that has its version. */
export const DEFINITIONS_ANNOTATION = 'sandpool.dev/definitions-version';

export const PLURALS = [
  'sandboxtemplates',
  'sandboxpools',
  'sandboxenvs',
  'sandboxes',
  'apikeys',
  'approvals',
  'userquotas',
  'workerclusters',
] as const;

export interface InstalledDefinitionsDeps {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of each definition that is older: while there is one this replica must lead nothing. */
  readonly outdated: OutdatedReport;
}

const AGAIN_MS = 30_000;
const PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/**
 * Looks at the installed definitions at the start and each 30 s. One that is missing or older than
 * this replica is reported, until it is not any more. Later ones hold all that this version writes.
 */
export class InstalledDefinitions {
  readonly #deps: InstalledDefinitionsDeps;
  #callOff: () => void = () => undefined;
  #stopped = false;
  #why: string | undefined;

  constructor(deps: InstalledDefinitionsDeps) {
    this.#deps = deps;
  }

  /** Resolves once each definition was looked at, as far as the API server allows that. */
  async start(): Promise<void> {
    await this.#look();
  }

  stop(): void {
    this.#stopped = true;
    this.#callOff();
  }

  /** Why it is not known whether the definitions are older. */
  warnings(): readonly string[] {
    return this.#why === undefined ? [] : [this.#why];
  }

  async #look(): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      await Promise.all(PLURALS.map((plural) => this.#lookAt(`${plural}.${GROUP}`)));
      this.#why = undefined;
    } catch (error) {
      // While the API server is away what was seen last stands.
      if (isRefused(error, 403))
        this.#why =
          'whether the custom resource definitions are older than this replica can not be seen: ' +
          'it lacks the right to list them';
      log.warn({ error: String(error) }, 'the definitions could not be looked at');
    }
    if (this.#stopped) return;
    this.#callOff = clock.at(clock.now() + AGAIN_MS, () => {
      void this.#look(); // it never rejects
    });
  }

  async #lookAt(name: string): Promise<void> {
    const { items } = listPageOf(
      await this.#deps.api.list(
        PATH,
        { fieldSelector: `metadata.name=${name}`, limit: 1 },
        { metadataOnly: true },
      ),
    );
    const [found] = items as readonly Pick<ResourceObject, 'metadata'>[];
    const version = Number(found?.metadata.annotations?.[DEFINITIONS_ANNOTATION] ?? 0);
    this.#deps.outdated(
      `the definition ${name}`,
      version >= DEFINITIONS_VERSION
        ? undefined
        : `${found ? `is older than this replica (${version})` : 'is missing'}: apply the custom ` +
            `resource definitions of this version (${DEFINITIONS_VERSION})`,
    );
  }
}
