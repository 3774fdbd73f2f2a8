import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Clients } from '../../limits/clients.ts';
import { errorAnswer } from '../../reply/error-table.ts';
import { giveError } from '../../corridor/raw-answer.ts';
import { requestIdFrom } from '../../limits/request-head.ts';
import type { InstanceId } from '../../../model/identifiers.ts';
import { Refusal } from '../../../model/refusals.ts';
import { sandboxNamed } from '../sandbox-id.ts';
import type { AddressedSandbox } from './addressed-sandbox.ts';

/**
 * Open to links only, on a worker's server. A request's signed identity covers its path: one
 * sandbox, port and kind of admission.
 */
export const OVER_LINKS = { control: '/compatible/api', traffic: '/compatible/sandbox' } as const;

/** A sandbox, named by a manager that has checked the token. */
export interface LinkedAddress {
  readonly sandboxId: InstanceId;
  readonly port: number;
  readonly by: AddressedSandbox['by'];
}

export const linkedPath = ({ sandboxId, port, by }: LinkedAddress, url: string): string =>
  `${OVER_LINKS.traffic}/${sandboxId}/${port}/${by}${url}`;

const CONTROL = /^\/compatible\/api(?=\/)/;
const TRAFFIC = /^\/compatible\/sandbox\/([0-9a-f-]{36})\/([0-9]{1,5})\/(token|signature)(?=\/)/;

const addresses = new WeakMap<IncomingMessage, LinkedAddress | 'control'>();

/** Undefined if the request did not come over a link. */
export const linkedAddressOf = (request: IncomingMessage): LinkedAddress | 'control' | undefined =>
  addresses.get(request);

export const overLinks = (
  server: Server,
  { clients, upgrade }: { readonly clients: Clients; readonly upgrade: Gateway['upgrade'] },
): Pick<Gateway, 'takes' | 'answer' | 'upgrade'> => ({
  takes: (request) =>
    (request.url ?? '').startsWith('/compatible/') && clients.isLinked?.(request) === true,
  answer: async (request, response) => {
    if (!adopted(request, clients)) return refuse(request, response);
    const over = new Promise<void>((resolve) => response.once('close', () => resolve()));
    server.emit('request', request, response);
    await over;
  },
  upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (adopted(request, clients)) upgrade(request, socket, head);
    else socket.destroy();
  },
});

const adopted = (request: IncomingMessage, clients: Clients): boolean => {
  clients.knownCaller(request); // the identity covers the original path
  const { url = '' } = request;
  const [traffic, id = '', port = '', by] = TRAFFIC.exec(url) ?? [];
  const sandboxId = sandboxNamed(id)?.id;
  if (CONTROL.test(url)) addresses.set(request, 'control');
  else if (traffic !== undefined && sandboxId !== undefined)
    addresses.set(request, {
      ...{ sandboxId, port: Number(port) },
      by: by === 'signature' ? 'signature' : 'token',
    });
  else return false;
  request.url = url.slice((traffic ?? OVER_LINKS.control).length);
  return true;
};

const refuse = (request: IncomingMessage, response: ServerResponse): void => {
  const requestId = requestIdFrom(request.headers['x-request-id']);
  const refusal = new Refusal('NOT_FOUND', 'there is nothing at this path');
  giveError(request, response, { answer: errorAnswer(refusal, requestId), requestId });
};
