import { localName } from '../../corridor/local-names.ts';
import { MAX_REFERENCE } from '../../corridor/common-schema.ts';
import { isDnsLabel } from '../../../model/identifiers.ts';
import { isAllowed } from '../../../model/pools/source-terms.ts';
import { featureDisabled, invalidArgument, Refusal } from '../../../model/refusals.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { Operations } from '../../../services/operations.ts';
import type { ClaimRequest } from '../../../actors/sandbox/commands/sandbox-operations.ts';
import type { SandboxView } from '../../../actors/views.ts';
import type { NewSandboxBody } from './schema.ts';

export interface CreateTerms {
  readonly clusterId: string;
  readonly templates: ReadonlyMap<string, string>;
  readonly waitMs: number;
  /** Permitted prefixes; empty to forbid images. */
  readonly images: readonly string[];
  /** Start time for a sandbox with an image, in ms. */
  readonly imageWaitMs: number;
  /** Ports need no token. */
  readonly openPorts: boolean;
  /** Handles `autoPause` if the daemon can't pause sandboxes. */
  readonly withoutPause: 'refuse' | 'end';
}

export interface CreateDeps {
  readonly operations: Pick<
    Operations,
    'claimSandbox' | 'deleteSandbox' | 'featureGates' | 'getTemplate'
  >;
  readonly terms: CreateTerms;
}

export interface CreateRequest {
  readonly body: NewSandboxBody;
  readonly lifetimeSeconds: number;
  readonly waitMs?: number;
  readonly more: Pick<ClaimRequest, 'opening' | 'step'>;
  readonly signal: AbortSignal;
}

/**
 * Claims from the template's pool or env, or starts its image. If the client has left, ends the
 * sandbox unless its Idempotency-Key can find it again.
 */
export const createSandbox = async (
  { operations, terms }: CreateDeps,
  caller: Caller,
  { body, lifetimeSeconds, waitMs = terms.waitMs, more, signal }: CreateRequest,
): Promise<SandboxView> => {
  refuseWhatCanNotBe(body);
  const withoutNetwork = fieldThatClosesNetwork(body, terms);
  const { templateID, metadata, envVars, timeout = lifetimeSeconds } = body;
  const { name, image } = namedBy(templateID, terms);
  const mayAskForPause = (): boolean =>
    terms.withoutPause === 'refuse' || operations.featureGates().pause;
  const request = {
    ...more,
    ...(image === undefined
      ? { waitMs }
      : { waitMs: terms.imageWaitMs, image: { name: image, field: 'templateID' } }),
    idleTimeoutMs: 0,
    lifetimeMs: timeout * 1_000,
    withoutNetwork: withoutNetwork === undefined ? undefined : { field: withoutNetwork },
    autoResume: body.autoResume?.enabled || undefined,
    autoPause: body.autoPause && mayAskForPause() ? true : undefined,
    metadata: metadata && Object.keys(metadata).length > 0 ? metadata : undefined,
    env: envVars && Object.keys(envVars).length > 0 ? envVars : undefined,
  };
  const sandbox = await operations
    .claimSandbox(caller, { ...request, poolName: name }, signal)
    .catch(async (error: unknown) => {
      const isMissing = error instanceof Refusal && error.code === 'POOL_NOT_FOUND';
      throw isMissing ? await missingPool(operations, name) : error;
    });
  if (!signal.aborted || more.opening) return sandbox;
  await operations.deleteSandbox(caller, sandbox.id);
  throw signal.reason;
};

/** Only this template runs the code of the code interpreter's SDKs. */
const INTERPRETER = 'code-interpreter-v1';
const OF_INTERPRETER = `sandpool templates create -f config/templates/${INTERPRETER}.json --admin`;

const missingPool = async (
  operations: Pick<Operations, 'getTemplate'>,
  name: string,
): Promise<Refusal> => {
  const what = `there is no pool ${JSON.stringify(name.slice(0, 64))}`;
  if (!isDnsLabel(name)) return new Refusal('POOL_NOT_FOUND', what);
  const hasTemplate = await operations.getTemplate(name).then(
    () => true,
    () => false,
  );
  const isOfInterpreter = name === INTERPRETER;
  const template = hasTemplate || isOfInterpreter ? name : 'default';
  const line = `create it: sandpool pools create ${name} --template ${template}`;
  return new Refusal(
    'POOL_NOT_FOUND',
    isOfInterpreter && !hasTemplate
      ? `${what}, and no template; an admin creates the template: ${OF_INTERPRETER}; then ${line}`
      : `${what}; ${line}`,
  );
};

/** Refuses names of other clusters and images. */
export const poolNameOf = (
  template: string,
  { templates, clusterId }: Pick<CreateTerms, 'templates' | 'clusterId'>,
): string =>
  localName('pool', templates.get(template) ?? template, { clusterId, field: 'templateID' });

export const namedPool = (
  template: string,
  { templates }: Pick<CreateTerms, 'templates'>,
): string => {
  const [pool = ''] = template.split(BEFORE_IMAGE, 1);
  return templates.get(pool) ?? pool;
};

export const BEFORE_IMAGE = '//';

export const namesImage = (template: string): boolean => template.includes(BEFORE_IMAGE);

/** Parses `{clusterID}::{pool}//{image}`; the cluster and the image are optional. */
const namedBy = (
  template: string,
  terms: CreateTerms,
): { readonly name: string; readonly image?: string } => {
  const at = template.indexOf(BEFORE_IMAGE);
  if (at === -1) return { name: poolNameOf(template, terms) };
  const image = template.slice(at + BEFORE_IMAGE.length);
  if (image === '' || image.length > MAX_REFERENCE)
    throw invalidArgument('templateID', `its image must have 1 to ${MAX_REFERENCE} characters`);
  if (terms.images.length === 0 || !isAllowed(image, terms.images))
    throw invalidArgument('templateID', 'its image is not one of the allowed images');
  return { name: poolNameOf(template.slice(0, at), terms), image };
};

/** Refuses unsupported fields that are not empty. */
const refuseWhatCanNotBe = (body: NewSandboxBody): void => {
  for (const field of ['volumeMounts', 'mcp', 'iam'] as const)
    if (!isEmpty(body[field])) throw invalidArgument(field, INSTEAD[field]);
  if (body.autoPause && body.autoPauseMemory === false)
    throw featureDisabled('autoPauseMemory', 'pauses that keep only files');
};

const INSTEAD = {
  volumeMounts: "is not possible here: a sandbox has the volumes of its pool's template",
  mcp:
    'is not possible here: sandboxes have no MCP gateway, and getMcpToken returns no token; ' +
    'start your own server, and reach its port with getHost',
  iam: 'is not possible here: sandboxes get no identity tokens',
} as const;

type Asked = Pick<NewSandboxBody, 'allow_internet_access' | 'network'>;

/** Refuses rules that no pool can enforce. */
const fieldThatClosesNetwork = (
  { allow_internet_access: internet, network }: Asked,
  { openPorts }: { readonly openPorts: boolean },
): string | undefined => {
  const { allowPublicTraffic, denyOut, ...others } = network ?? {};
  const [wrong] = Object.entries(others).find(([, value]) => !isEmpty(value)) ?? [];
  if (wrong !== undefined)
    throw invalidArgument(
      `network.${wrong}`.slice(0, 64),
      'is not possible here: a sandbox has the network of its pool, which is all of the ' +
        "host's network or none",
    );
  if (typeof allowPublicTraffic === 'boolean' && allowPublicTraffic !== openPorts)
    throw invalidArgument('network.allowPublicTraffic', openPorts ? ARE_OPEN : ARE_CLOSED);
  if (internet === false) return 'allow_internet_access';
  return denyOut?.length ? 'network.denyOut' : undefined;
};

const ARE_OPEN =
  "must be true here: everyone who knows a sandbox's id can reach its ports " +
  '(compatibleApi.openPorts: on)';
const ARE_CLOSED =
  'must be false here: ports of sandboxes require the header E2B-Traffic-Access-Token ' +
  '(compatibleApi.openPorts: off)';

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (typeof value === 'object' && Object.keys(value).length === 0);
