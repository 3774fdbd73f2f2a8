import { isIPv6 } from 'node:net';

const LONGEST = 4_096;
const UNANSWERED = 'its node does not answer';
const ADDRESS = 'an address';
const NODE = 'its node';
const PATH = 'a path of its node';

const DIALLED = new RegExp(
  [
    String.raw`\b(dial|read|write) (?:unix(?:packet|gram)?|tcp|udp|ip)[46]?`,
    String.raw`(?! (?:127\.|\[::1\]))`,
    String.raw`(?: [^\s:]*?(?:\[[^\]]*\])?(?::\d+)?(?:->\S+?)?)?: `,
  ].join(''),
  'g',
);
const PATHS_OF_NODES = new RegExp(
  [
    String.raw`(?<![\w/.])\/(?:(?:var\/)?run\/(?:netns|containerd|crio|docker|k3s|kubelet)`,
    String.raw`|var\/lib\/(?:kubelet|containerd|containers|docker|rancher|cni)`,
    String.raw`|var\/log\/(?:pods|containers)|(?:etc|opt)\/cni|sys\/fs\/cgroup|proc\/\d+\/ns)`,
    String.raw`[^\s"',:]*`,
  ].join(''),
  'g',
);
const ADDRESSES = new RegExp(
  [
    String.raw`(?<!\/[\w./-]{0,256}:)(?<![\w.-])(?!127\.|0\.0\.0\.0)`,
    String.raw`(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.-])`,
  ].join(''),
  'g',
);

const RULES: readonly (readonly [RegExp, string])[] = [
  // The rest of the message names the node.
  [/(?:error )?dialing backend: .*$/s, UNANSWERED],
  [/\b(?:Get|Post|Put) "[^"]*:10250\/.*$/s, UNANSWERED],
  [/\bproxy error from .*$/s, UNANSWERED],
  [/certificate is valid for .*?, not [^\s:]+/g, 'a certificate does not match'],
  // The scheduler's text about preemption repeats the rest.
  [/\s*(?:no new claims to deallocate,? ?)?preemption: .*$/s, ''],
  [/\brpc error: code = \w+ desc = /g, ''],
  // A registry's URL repeats the image's name.
  [/\b(Get|Head|Post|Put) "(?!https?:\/\/[^/"]+\/v2\/)[^"]*"/g, '$1'],
  [DIALLED, '$1: '],
  [/\blookup (\S+) on \S+: /g, 'lookup $1: '],
  [/\bunix:\/\/\S*?(?=[\s"':,]|$)/g, PATH],
  [PATHS_OF_NODES, PATH],
  [/(?<![\w/.])\/[^\s"',:]*\.sock\b/g, PATH],
  [ADDRESSES, ADDRESS],
  [/\bnodes? (["'])[^"']*\1/g, NODE],
  [/\bnode (?=[\w.-]*[\d.-])[\w.-]*\w/g, NODE],
  [/\bUser "[^"]*"/g, 'the daemon'],
  [/\bsystem:(?:serviceaccount|node):[\w.:-]*\w/g, 'an account'],
  [/\s*"?(?<![\w:])[0-9a-f]{64}\b"?/g, ''],
];

/**
 * Cleans a cluster's message for a tenant: keeps the cause, and removes names of nodes, addresses,
 * sockets, accounts, and paths outside of the sandbox.
 */
export const cleaned = (message: string, node?: string): string => {
  let text = message.slice(0, LONGEST);
  for (const [pattern, replacement] of RULES) text = text.replace(pattern, replacement);
  text = text.replace(
    /\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%\w+)?(?:\](?::\d{1,5})?)?/g,
    withoutIPv6,
  );
  if (node !== undefined && node !== '')
    text = text.replace(
      new RegExp(`(?<![\\w.-])${node.replaceAll(/[^\w-]/g, '\\$&')}(?![\\w-]|\\.\\w)`, 'g'),
      NODE,
    );
  return text.replaceAll(/\s+/g, ' ').trim();
};

const withoutIPv6 = (candidate: string): string => {
  const address = candidate
    .replace(/^\[/, '')
    .replace(/\](?::\d+)?$/, '')
    .replace(/%\w+$/, '');
  const end = /[:.]$/.test(address) && !address.endsWith('::') ? address.slice(-1) : '';
  const bare = end === '' ? address : address.slice(0, -1);
  return isIPv6(bare) && bare !== '::1' && bare !== '::' ? `${ADDRESS}${end}` : candidate;
};
