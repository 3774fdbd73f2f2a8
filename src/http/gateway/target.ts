import type { IncomingMessage } from 'node:http';

export interface EndpointTarget {
  readonly sandboxId: string;
  readonly endpointName: string;
  /** Up to the endpoint's name. */
  readonly prefix: string;
  readonly path: string;
}

const FORM = /^((?:\/v1)?\/sandboxes\/([^/?]+)\/endpoints\/([^/?]+))(\/[^?]*)?(\?.*)?$/;

/** Decodes nothing: names hold no escapes, and the rest belongs to the sandbox. */
export const readTarget = (url: string): EndpointTarget | undefined => {
  const match = url.includes('/endpoints/') ? FORM.exec(url) : undefined;
  if (!match) return undefined;
  const [, prefix = '', sandboxId = '', endpointName = '', path = '/', query = ''] = match;
  return { sandboxId, endpointName, prefix, path: path + query };
};

export const isForEndpoint = ({ url = '' }: Pick<IncomingMessage, 'url'>): boolean =>
  readTarget(url) !== undefined;
