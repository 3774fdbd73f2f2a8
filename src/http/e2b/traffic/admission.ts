import type { ExchangeTerms } from '../../gateway/exchange.ts';
import type { ClusterView } from '../../../actors/views.ts';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../../contracts/clock.ts';
import type { Clients } from '../../limits/clients.ts';
import type { InstanceId } from '../../../model/identifiers.ts';
import {
  invalidArgument,
  invalidToken,
  Refusal,
  sandboxNotFound,
} from '../../../model/refusals.ts';
import { INTERPRETER_PORT } from '../../../model/sandbox.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { Operations } from '../../../services/operations.ts';
import type { SandboxTokens } from '../../../services/keys/key-operations.ts';
import { linkedAddressOf } from './over-links.ts';
import { sandboxNamed, type NamedSandbox } from '../sandbox-id.ts';
import type { AddressedSandbox } from './addressed-sandbox.ts';
import { signedLinkOf, type FileLink } from './signed-link.ts';
import { addressOf, SERVICES_PORT } from './address.ts';

export interface AdmissionDeps {
  readonly operations: Pick<Operations, 'bearerOf' | 'signerOf' | 'guestOf'>;
  readonly clients: Pick<Clients, 'lookUp' | 'authenticate'>;
  readonly clock: Clock;
  readonly terms: {
    /** Ports need no token. */
    readonly openPorts: boolean;
    readonly clusterId: string;
    readonly others?: OtherClusters;
  };
}

/** Serves a manager's other clusters. */
export interface OtherClusters {
  readonly listOthers: () => readonly ClusterView[];
  /** Passes on their refusals. */
  readonly toCluster: (
    admitted: Admitted,
    request: IncomingMessage,
    exchanged: (terms: Omit<ExchangeTerms, 'agent'>) => Promise<void>,
  ) => Promise<void>;
}

/** A request with a valid token for its target. */
export interface Admitted {
  readonly sandboxId: InstanceId;
  readonly clusterId?: string;
  readonly caller: Caller;
  readonly port: number;
  readonly by: AddressedSandbox['by'] | 'nothing';
}

/** Ports of the sandbox's own programs take no access token. */
export const isOpen = (port: number): boolean =>
  port !== SERVICES_PORT && port !== INTERPRETER_PORT;

/**
 * A missing, wrong or foreign token gets the same INVALID_TOKEN. Does not check that the sandbox
 * exists. For requests over a link, the manager has done this.
 */
export const admitted = async (
  deps: AdmissionDeps,
  request: IncomingMessage,
): Promise<Admitted> => {
  const { operations } = deps;
  const linked = linkedAddressOf(request);
  if (linked !== undefined && linked !== 'control') {
    return { ...linked, caller: await deps.clients.authenticate(request) };
  }
  const { sandbox: text, port } = addressOf(request);
  const sandbox = text === undefined ? undefined : namedHere(deps, text);
  const given = tokenOf(request, port);
  if (given === undefined) return withoutToken(deps, request, { text, sandbox, port });
  const bearer = await operations.bearerOf(given.token);
  if (!bearer || !given.kinds.includes(bearer.goodFor)) throw invalidTokenAt(port);
  const { sandboxId, clusterId, caller } = bearer;
  if (text !== undefined && (sandbox?.id !== sandboxId || sandbox.clusterId !== clusterId))
    throw invalidTokenAt(port);
  return { sandboxId, clusterId, caller, port, by: 'token' };
};

interface Addressed {
  readonly text: string | undefined;
  readonly sandbox: NamedSandbox | undefined;
  readonly port: number;
}

const withoutToken = async (
  deps: AdmissionDeps,
  request: IncomingMessage,
  { text, sandbox, port }: Addressed,
): Promise<Admitted> => {
  const link = port === SERVICES_PORT ? signedLinkOf(request) : undefined;
  if (link && text !== undefined && !sandbox) throw invalidToken();
  if (link) return await bySignature(deps, request, { link, sandbox });
  if (text === undefined) throw invalidArgument('E2b-Sandbox-Id', 'is required');
  if (deps.terms.openPorts && isOpen(port)) return asGuest(deps, { sandbox, port });
  throw invalidTokenAt(port);
};

/** Only SDKs know the required header. */
const invalidTokenAt = (port: number): Refusal =>
  port === SERVICES_PORT
    ? invalidToken()
    : new Refusal(
        'INVALID_TOKEN',
        `invalid or expired token: this port asks for ${
          isOpen(port)
            ? 'the header E2B-Traffic-Access-Token, unless compatibleApi.openPorts is on'
            : 'the header X-Access-Token'
        }`,
      );

const namedHere = (
  { terms: { clusterId: own } }: Pick<AdmissionDeps, 'terms'>,
  text: string,
): NamedSandbox | undefined => {
  const named = sandboxNamed(text);
  return named?.clusterId === own ? { ...named, clusterId: undefined } : named;
};

/** Refuses an unknown sandbox with SANDBOX_NOT_FOUND, and another cluster's with INVALID_TOKEN. */
const asGuest = (
  { operations }: AdmissionDeps,
  { sandbox, port }: { readonly sandbox: NamedSandbox | undefined; readonly port: number },
): Admitted => {
  if (sandbox?.clusterId !== undefined) throw invalidToken();
  const sandboxId = sandbox?.id;
  const caller = sandboxId === undefined ? undefined : operations.guestOf(sandboxId);
  if (sandboxId === undefined || !caller) throw sandboxNotFound();
  return { sandboxId, caller, port, by: 'nothing' };
};

const bySignature = async (
  { operations, clients, clock, terms }: AdmissionDeps,
  request: IncomingMessage,
  { link, sandbox }: { readonly link: FileLink; readonly sandbox: NamedSandbox | undefined },
): Promise<Admitted> => {
  const { id: sandboxId, clusterId } = sandbox ?? {};
  const others = terms.others?.listOthers() ?? [];
  if (clusterId !== undefined && !others.some((other) => other.clusterId === clusterId))
    throw invalidToken();
  const { expiresAt, ...signed } = link;
  const signer = await clients.lookUp(request, async (from) => {
    const found = await operations.signerOf({ sandboxId, clusterId, from, ...signed });
    if (!found) throw invalidToken();
    return found;
  });
  if (expiresAt < clock.now()) throw invalidToken();
  const { caller } = signer;
  return { sandboxId: signer.sandboxId, clusterId, caller, port: SERVICES_PORT, by: 'signature' };
};

/** Clients send the token that they have, so other ports than the services port take either. */
const tokenOf = (
  { headers }: IncomingMessage,
  port: number,
): { readonly token: string; readonly kinds: readonly (keyof SandboxTokens)[] } | undefined => {
  const access = headers['x-access-token'];
  const traffic = headers['e2b-traffic-access-token'];
  if (port !== SERVICES_PORT && typeof traffic === 'string')
    return { token: traffic, kinds: ['traffic'] };
  return typeof access === 'string' ? { token: access, kinds: ['access'] } : undefined;
};
