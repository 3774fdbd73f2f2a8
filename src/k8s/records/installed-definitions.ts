import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { isRefused } from '../api/api-errors.ts';
import { listPageOf } from '../api/api-objects.ts';
import { GROUP, type OutdatedReport, type ResourceObject } from '../api/resource.ts';

/**
 * Raise it with every change of the definitions that script/crds.ts writes: the API server silently
 * drops fields that an older definition lacks.
 */
export const DEFINITIONS_VERSION = 1;
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
  /** While a definition is outdated, this replica must not lead anything. */
  readonly outdated: OutdatedReport;
}

const AGAIN_MS = 30_000;
const PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** Later versions contain everything that this version writes. */
export class InstalledDefinitions {
  readonly #deps: InstalledDefinitionsDeps;
  #callOff: () => void = () => undefined;
  #stopped = false;
  #why: string | undefined;

  constructor(deps: InstalledDefinitionsDeps) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    await this.#look();
  }

  stop(): void {
    this.#stopped = true;
    this.#callOff();
  }

  warnings(): readonly string[] {
    return this.#why === undefined ? [] : [this.#why];
  }

  async #look(): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      await Promise.all(PLURALS.map((plural) => this.#lookAt(`${plural}.${GROUP}`)));
      this.#why = undefined;
    } catch (error) {
      // While the API server is unreachable, the last result stays.
      if (isRefused(error, 403))
        this.#why =
          'the versions of the custom resource definitions cannot be checked: the daemon ' +
          'has no right to list them';
      log.warn({ error: String(error) }, 'definitions-not-read');
    }
    if (this.#stopped) return;
    this.#callOff = clock.at(clock.now() + AGAIN_MS, () => {
      void this.#look(); // never rejects
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
